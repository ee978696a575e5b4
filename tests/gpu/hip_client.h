// The HIP runtime as a client reaches it: by links, by dlsym, or by hipGetProcAddress.
#pragma once

#include "shim/gpu/hip_functions.h"
#include "shim/gpu/hip_types.h"

namespace oomrec::gpu_trial {

using namespace shim::hip;

// The functions of the table, found in the chosen way.
struct Hip {
#define X(name, base, parameters, ...) hipError_t(*name) parameters = nullptr;
  OOMREC_HIP_FUNCTIONS(X)
#undef X
};
extern Hip f;

// Other functions that a client needs, which the library does not wrap.
#define OTHER_HIP_FUNCTIONS(X)                                                               \
  X(hipSetDevice, (int device))                                                              \
  X(hipGetLastError, ())                                                                     \
  X(hipCtxDestroy, (hipCtx_t context))                                                       \
  X(hipStreamDestroy, (hipStream_t stream))                                                  \
  X(hipStreamBeginCapture, (hipStream_t stream, int mode))                                   \
  X(hipStreamEndCapture, (hipStream_t stream, hipGraph_t * graph))                           \
  X(hipEventDestroy, (hipEvent_t event))                                                     \
  X(hipMemPoolExportToShareableHandle,                                                       \
    (void* out, hipMemPool_t pool, int type, unsigned int flags))                            \
  X(hipMemPoolExportPointer, (void* out, void* block))                                       \
  X(hipMemExportToShareableHandle,                                                           \
    (void* out, hipMemGenericAllocationHandle_t handle, int type, unsigned long long flags)) \
  X(hipIpcGetMemHandle, (hipIpcMemHandle_t * out, void* block))

struct OtherHip {
#define X(name, parameters) hipError_t(*name) parameters = nullptr;
  OTHER_HIP_FUNCTIONS(X)
#undef X
};
extern OtherHip other;

// Fills `f` by linking. Defined in a separate file, for programs that link.
void reach_by_links();

}  // namespace oomrec::gpu_trial

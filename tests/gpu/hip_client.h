// The HIP runtime as a client reaches it: by links, by dlsym, or by hipGetProcAddress.
#pragma once

#include "shim/gpu/hip_functions.h"
#include "shim/gpu/hip_types.h"

namespace oomrec::gpu_trial {

using namespace shim::hip;

using Result = hipError_t;

inline constexpr const char* kDriver = "libamdhip64.so.5";

#define CLIENT_FUNCTIONS(X) OOMREC_HIP_FUNCTIONS(X)

// Other functions that a client needs, which the library does not wrap.
#define CLIENT_OTHER_FUNCTIONS(X)                                                            \
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

}  // namespace oomrec::gpu_trial

#include "tests/gpu/client.h"

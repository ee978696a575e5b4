// The CUDA driver as a client reaches it: by links, by dlsym, or by cuGetProcAddress.
#pragma once

#include "shim/gpu/cuda_functions.h"
#include "shim/gpu/cuda_types.h"

namespace oomrec::gpu_trial {

using namespace shim::cuda;

using Result = CUresult;

inline constexpr const char* kDriver = "libcuda.so.1";

#define CLIENT_FUNCTIONS(X) OOMREC_CUDA_FUNCTIONS(X)

// Other functions that a client needs, which the library does not wrap.
#define CLIENT_OTHER_FUNCTIONS(X)                                                         \
  X(cuInit, (unsigned flags))                                                             \
  X(cuCtxSetCurrent, (CUcontext context))                                                 \
  X(cuCtxGetCurrent, (CUcontext * context))                                               \
  X(cuCtxPopCurrent_v2, (CUcontext * context))                                            \
  X(cuCtxSynchronize, ())                                                                 \
  X(cuStreamDestroy_v2, (CUstream stream))                                                \
  X(cuStreamBeginCapture_v2, (CUstream stream, int mode))                                 \
  X(cuStreamEndCapture, (CUstream stream, CUgraph * graph))                               \
  X(cuEventDestroy_v2, (CUevent event))                                                   \
  X(cuMemGetInfo_v2, (std::size_t * free, std::size_t * total))                           \
  X(cuMemPoolSetAttribute, (CUmemoryPool pool, int attribute, void* value))               \
  X(cuMemPoolExportToShareableHandle,                                                     \
    (void* out, CUmemoryPool pool, int type, unsigned long long flags))                   \
  X(cuMemPoolExportPointer, (void* out, CUdeviceptr block))                               \
  X(cuMemExportToShareableHandle,                                                         \
    (void* out, CUmemGenericAllocationHandle handle, int type, unsigned long long flags)) \
  X(cuIpcGetMemHandle, (CUipcMemHandle * out, CUdeviceptr block))                         \
  X(cuGreenCtxDestroy, (CUgreenCtx context))

}  // namespace oomrec::gpu_trial

#include "tests/gpu/client.h"

// The functions of the CUDA driver that we call as queries; like OOMREC_CUDA_FUNCTIONS, without an
// action.
#pragma once

// clang-format off
#define OOMREC_CUDA_QUERIES(X) \
  X(cuCtxGetCurrent,              (CUcontext* context)) \
  X(cuCtxGetDevice,               (CUdevice* device)) \
  X(cuStreamGetCtx,               (CUstream stream, CUcontext* context)) \
  X(cuMemGetInfo_v2,              (size_t* free, size_t* total)) \
  X(cuDeviceGetUuid,              (CUuuid* uuid, CUdevice device)) \
  X(cuDeviceGetName,              (char* name, int size, CUdevice device)) \
  X(cuDriverGetVersion,           (int* version)) \
  X(cuStreamGetCaptureInfo_v2,    (CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id, CUgraph* graph, const CUgraphNode** dependencies, size_t* count)) \
  X(cuThreadExchangeStreamCaptureMode, (CUstreamCaptureMode* mode)) \
  X(cuMemGetAddressRange_v2,      (CUdeviceptr* base, size_t* bytes, CUdeviceptr address)) \
  X(cuDeviceGetMemPool,           (CUmemoryPool* pool, CUdevice device)) \
  X(cuMemPoolGetAttribute,        (CUmemoryPool pool, CUmemPool_attribute attribute, void* value)) \
  X(cuDevicePrimaryCtxGetState,   (CUdevice device, unsigned int* flags, int* active))
// clang-format on

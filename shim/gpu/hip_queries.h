// The functions of the HIP runtime that we call as queries; like OOMREC_HIP_FUNCTIONS, without an
// action.
#pragma once

// clang-format off
#define OOMREC_HIP_QUERIES(X) \
  X(hipPeekAtLastError,                 ()) \
  X(hipGetLastError,                    ()) \
  X(hipMalloc,                          (void** block, size_t bytes)) \
  X(hipGetDevice,                       (int* device)) \
  X(hipStreamGetDevice,                 (hipStream_t stream, hipDevice_t* device)) \
  X(hipMemGetInfo,                      (size_t* free, size_t* total)) \
  X(hipDeviceGetUuid,                   (hipUUID* uuid, hipDevice_t device)) \
  X(hipDeviceGetName,                   (char* name, int size, hipDevice_t device)) \
  X(hipRuntimeGetVersion,               (int* version)) \
  X(hipStreamGetCaptureInfo_v2,         (hipStream_t stream, hipStreamCaptureStatus* status, unsigned long long* id, hipGraph_t* graph, const hipGraphNode_t** dependencies, size_t* count)) \
  X(hipThreadExchangeStreamCaptureMode, (hipStreamCaptureMode* mode)) \
  X(hipMemGetAddressRange,              (hipDeviceptr_t* base, size_t* bytes, hipDeviceptr_t address)) \
  X(hipDeviceGetMemPool,                (hipMemPool_t* pool, int device)) \
  X(hipMemPoolGetAttribute,             (hipMemPool_t pool, hipMemPoolAttr attribute, void* value))
// clang-format on

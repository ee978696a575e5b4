// Declarations of the fakes' functions for programs: those of the tables, and others that tests
// call.
#pragma once

#include <cstddef>

#include "shim/gpu/cuda_functions.h"
#include "shim/gpu/cuda_types.h"
#include "shim/gpu/hip_functions.h"
#include "shim/gpu/hip_types.h"

extern "C" {
void fake_gpu_fail(const char* rules);
void fake_gpu_reset();
unsigned long fake_gpu_calls(const char* name);
}

namespace oomrec::shim::cuda {
extern "C" {
#define X(name, api, parameters, ...) int name parameters;
OOMREC_CUDA_FUNCTIONS(X)
#undef X
int cuInit(unsigned flags);
int cuDeviceGetCount(int* count);
int cuDeviceGetUuid_v2(void* uuid, CUdevice device);
int cuGetErrorName(int error, const char** name);
int cuCtxGetCurrent(CUcontext* out);
int cuCtxPopCurrent_v2(CUcontext* out);
int cuCtxSetCurrent(CUcontext context);
int cuCtxSynchronize();
int cuStreamBeginCapture_v2(CUstream stream, int mode);
int cuStreamEndCapture(CUstream stream, CUgraph* out);
int cuStreamDestroy_v2(CUstream stream);
int cuMemGetInfo_v2(std::size_t* free, std::size_t* total);
int cuMemGetAddressRange_v2(CUdeviceptr* base, std::size_t* bytes, CUdeviceptr block);
int cuMemSetAccess(CUdeviceptr address, std::size_t bytes, const void* access, std::size_t count);
int cuMemPoolGetAttribute(CUmemoryPool pool, int attribute, void* value);
int cuMemPoolSetAttribute(CUmemoryPool pool, int attribute, void* value);
int cuMemcpyHtoD_v2(CUdeviceptr to, const void* from, std::size_t bytes);
int cuMemcpyDtoH_v2(void* to, CUdeviceptr from, std::size_t bytes);
int cuIpcGetMemHandle(CUipcMemHandle* out, CUdeviceptr block);
}
}  // namespace oomrec::shim::cuda

namespace oomrec::shim::hip {
extern "C" {
#define X(name, api, parameters, ...) int name parameters;
OOMREC_HIP_FUNCTIONS(X)
#undef X
int hipInit(unsigned flags);
int hipSetDevice(int device);
int hipGetDevice(int* device);
int hipGetDeviceCount(int* count);
int hipMemGetInfo(std::size_t* free, std::size_t* total);
int hipMemcpy(void* to, const void* from, std::size_t bytes, int kind);
int hipGetLastError();
const char* hipGetErrorName(int error);
const char* hipGetErrorString(int error);
}
}  // namespace oomrec::shim::hip

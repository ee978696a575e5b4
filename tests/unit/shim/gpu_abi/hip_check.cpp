// Our table and types of the HIP runtime against the real header: the test passes if this compiles.
#include <hip/hip_runtime_api.h>

#include <cstdio>

#include "shim/gpu/hip_functions.h"
#include "shim/gpu/hip_types.h"
#include "tests/unit/shim/gpu_abi/check.h"

#define OURS oomrec::shim::hip
#define HIP_RELEASE (HIP_VERSION_MAJOR * 100 + HIP_VERSION_MINOR)

#define X(name, api, parameters, ...) SAME_PARAMETERS(hipError_t, name, parameters)
OOMREC_HIP_FUNCTIONS_5_2(X)
#undef X

SAME_SIZES(hipError_t, hipDevice_t, hipDeviceptr_t, hipArray_t, hipCtx_t, hipEvent_t,
           hipExternalMemory_t, hipGraph_t, hipGraphExec_t, hipGraphNode_t,
           hipMemGenericAllocationHandle_t, hipMemPool_t, hipMipmappedArray_t, hipModule_t,
           hipStream_t, hipJitOption, hipMemAllocationHandleType, hipArray_Format,
           hipIpcMemHandle_t)
SAME_VALUES(hipSuccess, hipErrorOutOfMemory, hipErrorNoDevice)
SAME_STRUCT(hipMemLocation, type, id)
SAME_VALUES(hipMemLocationTypeDevice)
SAME_STRUCT(hipMemPoolProps, location)
SAME_FIELDS(hipExternalMemoryHandleDesc, size)
SAME_FIELDS(hipExternalMemoryBufferDesc, size)
SAME_STRUCT(hipExtent, width, height, depth)
SAME_STRUCT(hipPitchedPtr, ptr, pitch, ysize)
SAME_STRUCT(hipChannelFormatDesc, x, y, z, w)
SAME_ARRAY(HIP_ARRAY_DESCRIPTOR)
SAME_ARRAY(HIP_ARRAY3D_DESCRIPTOR, Depth, Flags)

#if HIP_RELEASE >= 505
SAME_FIELDS(hipMemAllocationProp, location)
SAME_STRUCT(hipMemAllocNodeParams, poolProps, bytesize, dptr)
SAME_VALUES(hipGraphNodeTypeGraph, hipGraphNodeTypeMemAlloc, hipGraphNodeTypeMemFree)
#endif

// ---- Sizes of arrays: formats and flags by name.

using oomrec::shim::gpu::element_bits;
static_assert(oomrec::shim::gpu::kArrayLayered == hipArrayLayered);
static_assert(oomrec::shim::gpu::kArrayCubemap == hipArrayCubemap);

#define X(format, bits) static_assert(element_bits(HIP_AD_FORMAT_##format, 3) == bits);
COMMON_FORMATS(X)
#undef X

int main() {
  std::printf("as in the headers of HIP %d.%d\n", HIP_VERSION_MAJOR, HIP_VERSION_MINOR);
}

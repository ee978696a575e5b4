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

SAME_SIZE(hipError_t)
SAME_SIZE(hipDevice_t)
SAME_SIZE(hipDeviceptr_t)
SAME_SIZE(hipArray_t)
SAME_SIZE(hipCtx_t)
SAME_SIZE(hipEvent_t)
SAME_SIZE(hipExternalMemory_t)
SAME_SIZE(hipGraph_t)
SAME_SIZE(hipGraphExec_t)
SAME_SIZE(hipGraphNode_t)
SAME_SIZE(hipMemGenericAllocationHandle_t)
SAME_SIZE(hipMemPool_t)
SAME_SIZE(hipMipmappedArray_t)
SAME_SIZE(hipModule_t)
SAME_SIZE(hipStream_t)
SAME_SIZE(hipJitOption)
SAME_SIZE(hipMemAllocationHandleType)
SAME_SIZE(hipArray_Format)
SAME_SIZE(hipIpcMemHandle_t)

SAME_VALUE(hipSuccess)
SAME_VALUE(hipErrorOutOfMemory)
SAME_VALUE(hipErrorNoDevice)

SAME_SIZE(hipMemLocation)
SAME_FIELD(hipMemLocation, type)
SAME_FIELD(hipMemLocation, id)
SAME_VALUE(hipMemLocationTypeDevice)
SAME_SIZE(hipMemPoolProps)
SAME_FIELD(hipMemPoolProps, location)

SAME_FIELD(hipExternalMemoryHandleDesc, size)
SAME_FIELD(hipExternalMemoryBufferDesc, size)

SAME_SIZE(hipExtent)
SAME_FIELD(hipExtent, width)
SAME_FIELD(hipExtent, height)
SAME_FIELD(hipExtent, depth)
SAME_SIZE(hipPitchedPtr)
SAME_FIELD(hipPitchedPtr, ptr)
SAME_FIELD(hipPitchedPtr, pitch)
SAME_FIELD(hipPitchedPtr, ysize)

SAME_SIZE(hipChannelFormatDesc)
SAME_FIELD(hipChannelFormatDesc, x)
SAME_FIELD(hipChannelFormatDesc, y)
SAME_FIELD(hipChannelFormatDesc, z)
SAME_FIELD(hipChannelFormatDesc, w)
#define SAME_ARRAY(type)  \
  SAME_SIZE(type)         \
  SAME_FIELD(type, Width) \
  SAME_FIELD(type, Height) SAME_FIELD(type, Format) SAME_FIELD(type, NumChannels)
SAME_ARRAY(HIP_ARRAY_DESCRIPTOR)
SAME_ARRAY(HIP_ARRAY3D_DESCRIPTOR)
SAME_FIELD(HIP_ARRAY3D_DESCRIPTOR, Depth)
SAME_FIELD(HIP_ARRAY3D_DESCRIPTOR, Flags)

#if HIP_RELEASE >= 505
SAME_FIELD(hipMemAllocationProp, location)
SAME_SIZE(hipMemAllocNodeParams)
SAME_FIELD(hipMemAllocNodeParams, poolProps)
SAME_FIELD(hipMemAllocNodeParams, bytesize)
SAME_FIELD(hipMemAllocNodeParams, dptr)
SAME_VALUE(hipGraphNodeTypeGraph)
SAME_VALUE(hipGraphNodeTypeMemAlloc)
SAME_VALUE(hipGraphNodeTypeMemFree)
#endif

// ---- Sizes of arrays: formats and flags by name.

using oomrec::shim::gpu::element_bits;
static_assert(oomrec::shim::gpu::kArrayLayered == hipArrayLayered);
static_assert(oomrec::shim::gpu::kArrayCubemap == hipArrayCubemap);

#define X(format, bits) static_assert(element_bits(HIP_AD_FORMAT_##format, 3) == bits);
X(UNSIGNED_INT8, 24)
X(UNSIGNED_INT16, 48)
X(UNSIGNED_INT32, 96)
X(SIGNED_INT8, 24)
X(SIGNED_INT16, 48)
X(SIGNED_INT32, 96)
X(HALF, 48)
X(FLOAT, 96)
#undef X

int main() {
  std::printf("as in the headers of HIP %d.%d\n", HIP_VERSION_MAJOR, HIP_VERSION_MINOR);
}

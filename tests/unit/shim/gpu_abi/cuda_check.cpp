// Our table and types of the CUDA driver against the real cuda.h: the test passes if this compiles.
#define __CUDA_API_VERSION_INTERNAL  // every exported name is declared, instead of macros that
                                     // rename
#include <cuda.h>

#include <cstdio>

#include "shim/gpu/cuda_functions.h"
#include "shim/gpu/cuda_types.h"
#include "tests/unit/shim/gpu_abi/check.h"

#define OURS oomrec::shim::cuda

// A list of functions is checked if the header is the last of its series, or newer.
#define X(name, api, parameters, ...) SAME_PARAMETERS(CUresult, name, parameters)
OOMREC_CUDA_FUNCTIONS_11(X)
#if CUDA_VERSION >= 12090
OOMREC_CUDA_FUNCTIONS_12(X)
#endif
#if CUDA_VERSION >= 13050
OOMREC_CUDA_FUNCTIONS_13(X)
#endif
#undef X

SAME_SIZES(CUresult, CUdevice, CUdeviceptr, CUdeviceptr_v1, CUmemGenericAllocationHandle,
           cuuint64_t, CUarray, CUcontext, CUevent, CUexternalMemory, CUfunction, CUgraph,
           CUgraphExec, CUgraphNode, CUmemoryPool, CUmipmappedArray, CUmodule, CUstream,
           CUjit_option, CUmemAllocationHandleType, CUarray_format, CUipcMemHandle)
SAME_VALUES(CUDA_SUCCESS, CUDA_ERROR_OUT_OF_MEMORY, CUDA_ERROR_NOT_INITIALIZED)
SAME_STRUCT(CUmemLocation, type, id)
SAME_VALUES(CU_MEM_LOCATION_TYPE_DEVICE)
SAME_STRUCT(CUmemAllocationProp, location)
SAME_STRUCT(CUmemPoolProps, location)
SAME_STRUCT(CUDA_EXTERNAL_MEMORY_HANDLE_DESC, size)
SAME_STRUCT(CUDA_EXTERNAL_MEMORY_BUFFER_DESC, size)
SAME_STRUCT(CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC, arrayDesc, numLevels)
SAME_ARRAY(CUDA_ARRAY_DESCRIPTOR)
SAME_ARRAY(CUDA_ARRAY_DESCRIPTOR_v1)
SAME_ARRAY(CUDA_ARRAY3D_DESCRIPTOR, Depth, Flags)
SAME_ARRAY(CUDA_ARRAY3D_DESCRIPTOR_v1, Depth, Flags)
SAME_STRUCT(CUarrayMapInfo, resource, subresourceType, subresource.sparseLevel.extentDepth,
            subresource.miptail.size, memOperationType, memHandle, deviceBitMask)
SAME_VALUES(CU_MEM_OPERATION_TYPE_MAP, CU_MEM_OPERATION_TYPE_UNMAP)
SAME_STRUCT(CUDA_MEM_ALLOC_NODE_PARAMS, poolProps, bytesize, dptr)
SAME_VALUES(CU_GRAPH_NODE_TYPE_GRAPH, CU_GRAPH_NODE_TYPE_MEM_ALLOC, CU_GRAPH_NODE_TYPE_MEM_FREE)

#if CUDA_VERSION >= 12090
SAME_STRUCT(CUmulticastObjectProp, size)
SAME_STRUCT(CUgraphNodeParams, type, alloc, alloc.bytesize, alloc.dptr, free.dptr, graph.graph)
SAME_SIZES(CUkernel, CUlibrary, CUgreenCtx, CUdevResourceDesc, CUlibraryOption,
           CUdriverProcAddressQueryResult)
#endif
#if CUDA_VERSION >= 13050
SAME_SIZES(CUmemAllocationType)
SAME_VALUES(CU_MEM_LOCATION_TYPE_DEVICE_LOCALITY_DOMAIN)
static_assert(offsetof(CUmemLocation, localized.deviceId) == offsetof(OURS::CUmemLocation, id));
#endif

// ---- Sizes of arrays: formats and flags by name.

using oomrec::shim::gpu::element_bits;
static_assert(oomrec::shim::gpu::kArrayLayered == CUDA_ARRAY3D_LAYERED);
static_assert(oomrec::shim::gpu::kArrayCubemap == CUDA_ARRAY3D_CUBEMAP);
static_assert(oomrec::shim::gpu::kArraySparse == CUDA_ARRAY3D_SPARSE);
static_assert(oomrec::shim::gpu::kArrayDeferredMapping == CUDA_ARRAY3D_DEFERRED_MAPPING);

// clang-format off
#define X(format, bits) static_assert(element_bits(CU_AD_FORMAT_##format, 3) == bits);
COMMON_FORMATS(X) X(NV12, 12)
X(UNORM_INT8X1, 8) X(UNORM_INT8X2, 16) X(UNORM_INT8X4, 32)
X(UNORM_INT16X1, 16) X(UNORM_INT16X2, 32) X(UNORM_INT16X4, 64)
X(SNORM_INT8X1, 8) X(SNORM_INT8X2, 16) X(SNORM_INT8X4, 32)
X(SNORM_INT16X1, 16) X(SNORM_INT16X2, 32) X(SNORM_INT16X4, 64)
X(BC1_UNORM, 4) X(BC1_UNORM_SRGB, 4) X(BC2_UNORM, 8) X(BC2_UNORM_SRGB, 8)
X(BC3_UNORM, 8) X(BC3_UNORM_SRGB, 8) X(BC4_UNORM, 4) X(BC4_SNORM, 4) X(BC5_UNORM, 8)
X(BC5_SNORM, 8) X(BC6H_UF16, 8) X(BC6H_SF16, 8) X(BC7_UNORM, 8) X(BC7_UNORM_SRGB, 8)
#if CUDA_VERSION >= 12090
X(P010, 24) X(P016, 24) X(NV16, 16) X(P210, 32) X(P216, 32) X(YUY2, 16) X(Y210, 32) X(Y216, 32)
X(AYUV, 32) X(Y410, 32) X(Y416, 64) X(Y444_PLANAR8, 24) X(Y444_PLANAR10, 48)
X(YUV444_8bit_SemiPlanar, 24) X(YUV444_16bit_SemiPlanar, 48) X(UNORM_INT_101010_2, 32)
#endif
#if CUDA_VERSION >= 13050
X(UINT8_PACKED_422, 16) X(UINT8_PACKED_444, 24)
X(UINT8_SEMIPLANAR_420, 12) X(UINT16_SEMIPLANAR_420, 24) X(UINT8_SEMIPLANAR_422, 16)
X(UINT16_SEMIPLANAR_422, 32) X(UINT8_SEMIPLANAR_444, 24) X(UINT16_SEMIPLANAR_444, 48)
X(UINT8_PLANAR_420, 12) X(UINT16_PLANAR_420, 24) X(UINT8_PLANAR_422, 16)
X(UINT16_PLANAR_422, 32) X(UINT8_PLANAR_444, 24) X(UINT16_PLANAR_444, 48)
#endif
#undef X
    // clang-format on

    int main() {
  std::printf("as in cuda.h, CUDA %d\n", CUDA_VERSION);
}

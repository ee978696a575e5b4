// The types of the CUDA driver's interface that the library needs: sizes, and the fields that it
// reads.
//
// No vendor's header is included, so that one library works on every machine. The test gpu_abi
// checks each type against the real headers, if present. Names of types and fields are the
// vendor's.
#pragma once

#include <cstddef>
#include <cstdint>

#include "shim/gpu/array_bytes.h"

namespace oomrec::shim::cuda {

using CUresult = int;
inline constexpr CUresult CUDA_SUCCESS = 0;
inline constexpr CUresult CUDA_ERROR_OUT_OF_MEMORY = 2;
inline constexpr CUresult CUDA_ERROR_NOT_INITIALIZED = 3;

using CUdevice = int;
using CUdeviceptr = unsigned long long;
using CUdeviceptr_v1 = unsigned int;  // for functions older than CUDA 3.2
using CUmemGenericAllocationHandle = unsigned long long;
using cuuint64_t = std::uint64_t;

using CUarray = struct CUarray_st*;
using CUcontext = struct CUctx_st*;
using CUevent = struct CUevent_st*;
using CUexternalMemory = struct CUextMemory_st*;
using CUfunction = struct CUfunc_st*;
using CUgraph = struct CUgraph_st*;
using CUgraphExec = struct CUgraphExec_st*;
using CUgraphNode = struct CUgraphNode_st*;
using CUgreenCtx = struct CUgreenCtx_st*;
using CUdevResourceDesc = struct CUdevResourceDesc_st*;
using CUkernel = struct CUkern_st*;
using CUlibrary = struct CUlib_st*;
using CUmemoryPool = struct CUmemPoolHandle_st*;
using CUmipmappedArray = struct CUmipmappedArray_st*;
using CUmodule = struct CUmod_st*;
using CUstream = struct CUstream_st*;

// Enumerations whose values do not matter here.
using CUdriverProcAddressQueryResult = int;
using CUmemPool_attribute = int;
using CUstreamCaptureMode = int;
using CUstreamCaptureStatus = int;
using CUjit_option = int;
using CUlibraryOption = int;
using CUmemAllocationHandleType = int;
using CUmemAllocationType = int;

// Only pointers to these are passed on.
struct CUctxCreateParams;
struct CUDA_GRAPH_INSTANTIATE_PARAMS;
struct CUexecAffinityParam;
struct CUgraphEdgeData;
struct CUmemPoolPtrExportData;

struct CUuuid {
  char bytes[16];
};

struct CUipcMemHandle {
  char reserved[64];
};

// ---- Locations of memory

struct CUmemLocation {
  int type;
  int id;
};
inline constexpr int CU_MEM_LOCATION_TYPE_DEVICE = 1;
inline constexpr int CU_MEM_LOCATION_TYPE_DEVICE_LOCALITY_DOMAIN =
    6;  // the low byte of id: a device

// The device of a location; -1 for the host and for none.
constexpr CUdevice device_of(const CUmemLocation* location) noexcept {
  if (location == nullptr) return -1;
  if (location->type == CU_MEM_LOCATION_TYPE_DEVICE) return location->id;
  return location->type == CU_MEM_LOCATION_TYPE_DEVICE_LOCALITY_DOMAIN ? location->id & 0xff : -1;
}

struct CUmemAllocationProp {
  CUmemAllocationType type;
  CUmemAllocationHandleType requestedHandleTypes;
  CUmemLocation location;
  void* win32HandleMetaData;
  unsigned char allocFlags[8];
};

struct CUmemPoolProps {
  CUmemAllocationType allocType;
  CUmemAllocationHandleType handleTypes;
  CUmemLocation location;
  void* win32SecurityAttributes;
  unsigned char reserved[64];
};

struct CUmulticastObjectProp {
  unsigned int numDevices;
  std::size_t size;
  unsigned long long handleTypes;
  unsigned long long flags;
};

// ---- Memory of other interfaces: Vulkan, OpenGL, another process

struct CUDA_EXTERNAL_MEMORY_HANDLE_DESC {
  int type;
  void* handle[2];
  unsigned long long size;
  unsigned int flags;
  unsigned int reserved[16];
};

struct CUDA_EXTERNAL_MEMORY_BUFFER_DESC {
  unsigned long long offset;
  unsigned long long size;
  unsigned int flags;
  unsigned int reserved[16];
};

// ---- Arrays

using CUarray_format = int;

struct CUDA_ARRAY_DESCRIPTOR {
  std::size_t Width;
  std::size_t Height;
  CUarray_format Format;
  unsigned int NumChannels;
};

struct CUDA_ARRAY_DESCRIPTOR_v1 {
  unsigned int Width;
  unsigned int Height;
  CUarray_format Format;
  unsigned int NumChannels;
};

struct CUDA_ARRAY3D_DESCRIPTOR {
  std::size_t Width;
  std::size_t Height;
  std::size_t Depth;
  CUarray_format Format;
  unsigned int NumChannels;
  unsigned int Flags;
};

struct CUDA_ARRAY3D_DESCRIPTOR_v1 {
  unsigned int Width;
  unsigned int Height;
  unsigned int Depth;
  CUarray_format Format;
  unsigned int NumChannels;
  unsigned int Flags;
};

struct CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC {
  unsigned long long offset;
  CUDA_ARRAY3D_DESCRIPTOR arrayDesc;
  unsigned int numLevels;
  unsigned int reserved[16];
};

template <typename Descriptor>
constexpr std::size_t bytes_of(const Descriptor* array, unsigned levels = 1) noexcept {
  return gpu::described_bytes<gpu::BlockFormats::cuda>(array, levels);
}

// One change to a sparse array's memory.
struct CUarrayMapInfo {
  int resourceType;
  void* resource;
  int subresourceType;
  union {
    struct {
      unsigned int level;
      unsigned int layer;
      unsigned int offsetX;
      unsigned int offsetY;
      unsigned int offsetZ;
      unsigned int extentWidth;
      unsigned int extentHeight;
      unsigned int extentDepth;
    } sparseLevel;
    struct {
      unsigned int layer;
      unsigned long long offset;
      unsigned long long size;
    } miptail;
  } subresource;
  int memOperationType;
  int memHandleType;
  CUmemGenericAllocationHandle memHandle;
  unsigned long long offset;
  unsigned int deviceBitMask;
  unsigned int flags;
  unsigned int reserved[2];
};
inline constexpr int CU_MEM_OPERATION_TYPE_MAP = 1;
inline constexpr int CU_MEM_OPERATION_TYPE_UNMAP = 2;

// ---- Graphs

struct CUDA_MEM_ALLOC_NODE_PARAMS {
  CUmemPoolProps poolProps;
  const void* accessDescs;
  std::size_t accessDescCount;
  std::size_t bytesize;
  CUdeviceptr dptr;  // set by the call
};

struct CUDA_MEM_FREE_NODE_PARAMS {
  CUdeviceptr dptr;
};

struct CUDA_CHILD_GRAPH_NODE_PARAMS {
  CUgraph graph;
  int ownership;
};

struct CUgraphNodeParams {
  int type;
  int reserved0[3];
  union {
    long long reserved1[29];
    CUDA_MEM_ALLOC_NODE_PARAMS alloc;
    CUDA_MEM_FREE_NODE_PARAMS free;
    CUDA_CHILD_GRAPH_NODE_PARAMS graph;
  };
  long long reserved2;
};
inline constexpr int CU_GRAPH_NODE_TYPE_GRAPH = 4;
inline constexpr int CU_GRAPH_NODE_TYPE_MEM_ALLOC = 10;
inline constexpr int CU_GRAPH_NODE_TYPE_MEM_FREE = 11;

}  // namespace oomrec::shim::cuda

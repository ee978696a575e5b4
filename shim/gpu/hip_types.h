// The types of the HIP runtime's interface that the library needs: sizes, and the fields that it
// reads. Like shim/gpu/cuda_types.h for CUDA.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>

#include "shim/gpu/array_bytes.h"

namespace oomrec::shim::hip {

using hipError_t = int;
inline constexpr hipError_t hipSuccess = 0;
inline constexpr hipError_t hipErrorOutOfMemory = 2;
inline constexpr hipError_t hipErrorNoDevice = 100;

using hipDevice_t = int;
using hipDeviceptr_t = void*;

using hipArray_t = struct hipArray*;
using hipCtx_t = struct ihipCtx_t*;
using hipEvent_t = struct ihipEvent_t*;
using hipExternalMemory_t = void*;
using hipGraph_t = struct ihipGraph*;
using hipGraphExec_t = struct hipGraphExec*;
using hipGraphNode_t = struct hipGraphNode*;
using hipLibrary_t = struct ihipLibrary_t*;
using hipMemGenericAllocationHandle_t = struct ihipMemGenericAllocationHandle*;
using hipMemPool_t = struct ihipMemPoolHandle_t*;
using hipMipmappedArray_t = struct hipMipmappedArray*;
using hipModule_t = struct ihipModule_t*;
using hipStream_t = struct ihipStream_t*;

// Enumerations whose values do not matter here.
using hipDriverEntryPointQueryResult = int;
using hipDriverProcAddressQueryResult = int;
using hipJitOption = int;
using hipMemPoolAttr = int;
using hipStreamCaptureMode = int;
using hipStreamCaptureStatus = int;
using hipLibraryOption = int;
using hipMemAllocationHandleType = int;
using hipMemAllocationType = int;

// Only pointers to these are passed on.
struct hipExternalMemoryMipmappedArrayDesc;
struct hipGraphInstantiateParams;
struct hipMemPoolPtrExportData;

struct hipUUID {
  char bytes[16];
};

struct hipIpcMemHandle_t {
  char reserved[64];
};

// ---- Locations of memory

struct hipMemLocation {
  int type;
  int id;
};
inline constexpr int hipMemLocationTypeDevice = 1;

// The device of a location; -1 for the host and for none.
constexpr hipDevice_t device_of(const hipMemLocation* location) noexcept {
  return location != nullptr && location->type == hipMemLocationTypeDevice ? location->id : -1;
}

// As declared by headers later than 5.2's, which order the fields differently.
struct hipMemAllocationProp {
  hipMemAllocationType type;
  hipMemAllocationHandleType requestedHandleType;
  hipMemLocation location;
  void* win32HandleMetaData;
  unsigned char allocFlags[4];
};

struct hipMemPoolProps {
  hipMemAllocationType allocType;
  hipMemAllocationHandleType handleTypes;
  hipMemLocation location;
  void* win32SecurityAttributes;
  unsigned char reserved[64];
};

// ---- Memory of other interfaces: Vulkan, OpenGL, another process

struct hipExternalMemoryHandleDesc {
  int type;
  void* handle[2];
  unsigned long long size;
  unsigned int flags;
};

struct hipExternalMemoryBufferDesc {
  unsigned long long offset;
  unsigned long long size;
  unsigned int flags;
};

// ---- Pitched memory and arrays

struct hipExtent {
  std::size_t width;
  std::size_t height;
  std::size_t depth;
};

struct hipPitchedPtr {
  void* ptr;
  std::size_t pitch;
  std::size_t xsize;
  std::size_t ysize;
};

using hipArray_Format = int;

struct HIP_ARRAY_DESCRIPTOR {
  std::size_t Width;
  std::size_t Height;
  hipArray_Format Format;
  unsigned int NumChannels;
};

struct HIP_ARRAY3D_DESCRIPTOR {
  std::size_t Width;
  std::size_t Height;
  std::size_t Depth;
  hipArray_Format Format;
  unsigned int NumChannels;
  unsigned int Flags;
};

struct hipChannelFormatDesc {
  int x;  // bits
  int y;
  int z;
  int w;
  int f;
};

template <typename Descriptor>
constexpr std::size_t bytes_of(const Descriptor* array, unsigned levels = 1) noexcept {
  return gpu::described_bytes<gpu::BlockFormats::none>(array, levels);
}

// For functions that take the bits of each channel.
constexpr std::size_t bytes_of(const hipChannelFormatDesc* element, hipExtent extent,
                               unsigned flags, unsigned levels = 1) noexcept {
  if (element == nullptr) return 0;
  std::size_t bits = 0;
  for (const int channel : {element->x, element->y, element->z, element->w}) {
    bits += static_cast<std::size_t>(channel);
  }
  return gpu::array_bytes({extent.width, extent.height, extent.depth, flags}, bits, levels, false);
}

// ---- Graphs

struct hipMemAllocNodeParams {
  hipMemPoolProps poolProps;
  const void* accessDescs;
  std::size_t accessDescCount;
  std::size_t bytesize;
  void* dptr;  // set by the call
};

struct hipMemFreeNodeParams {
  void* dptr;
};

struct hipChildGraphNodeParams {
  hipGraph_t graph;
};

struct hipGraphNodeParams {
  int type;
  int reserved0[3];
  union {
    long long reserved1[29];
    hipMemAllocNodeParams alloc;
    hipMemFreeNodeParams free;
    hipChildGraphNodeParams graph;
  };
  long long reserved2;
};
inline constexpr int hipGraphNodeTypeGraph = 4;
inline constexpr int hipGraphNodeTypeMemAlloc = 10;
inline constexpr int hipGraphNodeTypeMemFree = 11;

}  // namespace oomrec::shim::hip

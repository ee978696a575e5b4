// From the runtime's structures to the core's parameters, and back.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "shim/gpu/hip_types.h"
#include "tests/fake_gpu/both_types.h"
#include "tests/fake_gpu/core/translate.h"

namespace fake_gpu {

using namespace oomrec::shim::hip;

#define X(name, other, ours) using name = ours;
BOTH_TYPES(X)
#undef X
using PoolFlags = unsigned;
inline constexpr Needs for_graphs = context;
#define DRIVER(name) hip##name
#define SINCE(version) 0  // names have no versions here

inline constexpr int kRuntimeVersion = 60300000;
inline constexpr int kEmptyNode = 5;
inline constexpr std::uint64_t kPerThreadStream = 2;

inline int count_devices(int* count) {
  const int result = put(count, device_count());
  return result == success && device_count() == 0 ? int{no_device} : result;
}

// Names have no versions here: a form exists or not.
inline int look_up(const char* name, void** function, std::uint64_t flags, int* status) {
  Found found = Found::no_such_name;
  const int result = resolve(name, function, 0, (flags & kPerThreadStream) != 0, &found);
  if (result == success && status != nullptr) *status = static_cast<int>(found);
  return result;
}

// Creating a context does not change the thread's device.
inline int create_aside(void** out, unsigned flags, int device) {
  const int result = create_context(out, flags, device);
  return result == success ? pop_current(nullptr) : result;
}

// The first fields of hipDeviceProp_t, HIP 5; the others are unchanged.
inline int device_properties(void* out, int device) {
  struct {
    char name[256];
    std::size_t totalGlobalMem;
    std::size_t sharedMemPerBlock;
    int regsPerBlock;
    int warpSize;
    int maxThreadsPerBlock;
    int maxThreadsDim[3];
    int maxGridSize[3];
  } properties = {{}, capacity(device), 64 << 10, 64 << 10, 64, 1024, {1024, 1024, 1024}, {}};
  if (out == nullptr) return invalid_value;
  const int result = device_name(properties.name, sizeof properties.name, device);
  if (result == success) std::memcpy(out, &properties, sizeof properties);
  return result;
}

// ---- Memory. A request of 0 bytes succeeds with a null address.

inline int allocate_any(void** out, std::size_t bytes) {
  if (bytes == 0) return put(out, nullptr);
  return allocate(address_out(out), bytes);
}

inline int allocate_host_memory(void** out, std::size_t bytes, unsigned flags) {
  if (bytes == 0) return put(out, nullptr);
  return allocate_host(out, bytes, flags);
}

// Device or host memory, under either function name.
inline int free_either(void* block) {
  const bool of_host = find_block(address_of(block), static_cast<unsigned>(Kind::host)) != nullptr;
  return of_host ? free_host(block) : free_block(address_of(block));
}

// With FAKE_GPU_CALLS_ITSELF it calls the exported function, like real drivers.
int allocate_managed_memory(void** out, std::size_t bytes);

inline int allocate_3d(hipPitchedPtr* out, hipExtent extent) {
  if (out == nullptr) return invalid_value;
  const int result = allocate_pitch(address_out(&out->ptr), &out->pitch, extent.width,
                                    extent.height * extent.depth);
  if (result != success) return result;
  out->xsize = extent.width;
  out->ysize = extent.height;
  return success;
}

// hipPointerAttribute_t, HIP 5.
inline int pointer_facts(void* out, const void* pointer) {
  struct {
    int memoryType;  // 0: host, 1: device
    int device;
    const void* devicePointer;
    const void* hostPointer;
    int isManaged;
    unsigned allocationFlags;
  } facts = {};
  const Block* const block = block_at(address_of(pointer));
  if (block == nullptr || out == nullptr) return invalid_value;
  const bool of_host = block->device == kNoDevice;
  facts = {of_host ? 0 : 1,
           of_host ? thread_device() : block->device,
           pointer,
           of_host ? pointer : nullptr,
           block->kind == Kind::managed,
           block->flags};
  std::memcpy(out, &facts, sizeof facts);
  return success;
}

inline int pool_of(hipMemPool_t* out, const hipMemPoolProps* props) {
  if (props == nullptr) return invalid_value;
  return create_pool(handle_out(out), device_of(&props->location), 0);
}

inline int handle_of(hipMemGenericAllocationHandle_t* out, std::size_t bytes,
                     const hipMemAllocationProp* props) {
  if (props == nullptr) return invalid_value;
  return create_handle(core_handle(out), bytes, device_of(&props->location),
                       props->requestedHandleType);
}

// ---- Arrays

inline ArrayShape shape_of(hipExtent extent, unsigned flags) {
  return {extent.width, extent.height, extent.depth, 0, 0, flags};
}

// ---- Graphs

inline int add_any_node(hipGraphNode_t* node, hipGraph_t graph, hipGraphNodeParams* params) {
  if (params == nullptr) return invalid_value;
  switch (params->type) {
    case hipGraphNodeTypeMemAlloc:
      return add_allocation(node, graph, &params->alloc);
    case hipGraphNodeTypeMemFree:
      return add_free_node(handle_out(node), graph, address_of(params->free.dptr));
    case hipGraphNodeTypeGraph:
      return add_child_node(handle_out(node), graph, params->graph.graph);
  }
  return add_other_node(handle_out(node), graph, params->type);
}

}  // namespace fake_gpu

// From the driver's structures to the core's parameters, and back.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "shim/gpu/cuda_types.h"
#include "tests/fake_gpu/both_types.h"
#include "tests/fake_gpu/core/translate.h"

namespace fake_gpu {

using namespace oomrec::shim::cuda;

#define X(name, ours, other) using name = ours;
BOTH_TYPES(X)
#undef X
using PoolFlags = unsigned long long;
inline constexpr Needs for_graphs = init;
#define DRIVER(name) cu##name
#define SINCE(version) version

inline constexpr int kDriverVersion = 13050;
inline constexpr int kEagerLoading = 1;
inline constexpr int kEmptyNode = 5;
inline constexpr int kReadWrite = 3;

inline int start_driver(unsigned flags) {
  if (flags != 0) return invalid_value;
  if (device_count() == 0) return no_device;
  start();
  return success;
}

int error_name(int error, const char** name);
int error_text(int error, const char** text);
int attribute_value(int attribute, int device);

inline int look_up(const char* name, void** function, int version, cuuint64_t flags, int* status) {
  constexpr cuuint64_t kPerThreadStream = 2;
  Found found = Found::no_such_name;
  const int result = resolve(name, function, version, (flags & kPerThreadStream) != 0, &found);
  if (result == success && status != nullptr) *status = static_cast<int>(found);
  return result;
}

inline int create_green_context(void** out, int device) {
  const int result = create_context(out, 0, device);
  return result == success ? pop_current(nullptr) : result;  // it is not made current
}

// ---- The first ABI: addresses and sizes of 32 bits

template <class Call>
int narrow(CUdeviceptr_v1* out, Call call) {
  CUdeviceptr wide = 0;
  const int result = out == nullptr ? int{invalid_value} : call(&wide);
  if (result == success) *out = static_cast<CUdeviceptr_v1>(wide);
  return result;
}

inline int allocate_low(CUdeviceptr_v1* out, std::size_t bytes) {
  return narrow(out, [=](CUdeviceptr* wide) { return allocate(wide, bytes, Where::below_2g); });
}

inline int allocate_low_pitch(CUdeviceptr_v1* out, unsigned* pitch, unsigned width, unsigned rows) {
  std::size_t wide_pitch = 0;
  const int result = narrow(out, [&](CUdeviceptr* wide) {
    return allocate_pitch(wide, &wide_pitch, width, rows, Where::below_2g);
  });
  if (result == success && pitch != nullptr) *pitch = static_cast<unsigned>(wide_pitch);
  return result;
}

inline unsigned narrowed(std::size_t bytes) {
  return static_cast<unsigned>(std::min(bytes, std::size_t{UINT32_MAX}));
}

inline int narrow_memory_info(unsigned* free, unsigned* total) {
  std::size_t figures[2] = {};
  const int result = memory_info(&figures[0], &figures[1]);
  if (free == nullptr || total == nullptr) return invalid_value;
  *free = narrowed(figures[0]);
  *total = narrowed(figures[1]);
  return result;
}

inline int narrow_address_range(CUdeviceptr_v1* base, unsigned* bytes, CUdeviceptr block) {
  CUdeviceptr wide = 0;
  std::size_t wide_bytes = 0;
  const int result = address_range(&wide, &wide_bytes, block);
  if (result != success) return result;
  if (base != nullptr) *base = static_cast<CUdeviceptr_v1>(wide);
  if (bytes != nullptr) *bytes = narrowed(wide_bytes);
  return success;
}

// ---- Memory

// With FAKE_GPU_CALLS_ITSELF it calls the exported function, like real drivers: a recorder sees
// that call, too, and must not attribute it to the program.
int allocate_managed_memory(CUdeviceptr* out, std::size_t bytes);

inline int pool_of(CUmemoryPool* out, const CUmemPoolProps* props) {
  if (props == nullptr) return invalid_value;
  std::size_t largest = 0;  // maxSize, the first of the bytes that older headers reserve
  std::memcpy(&largest, props->reserved, sizeof largest);
  return create_pool(handle_out(out), device_of(&props->location), largest);
}

inline int handle_of(CUmemGenericAllocationHandle* out, std::size_t bytes,
                     const CUmemAllocationProp* props) {
  if (props == nullptr) return invalid_value;
  return create_handle(core_handle(out), bytes, device_of(&props->location),
                       props->requestedHandleTypes);
}

inline int handle_properties(CUmemAllocationProp* out, CUmemGenericAllocationHandle given) {
  constexpr int kPinned = 1;
  constexpr int kHost = 2;
  const Handle* const handle = find_handle(pointer_of(given));
  if (handle == nullptr || out == nullptr) return invalid_value;
  *out = {};
  out->type = kPinned;
  out->requestedHandleTypes = handle->handle_types;
  out->location = handle->device == kNoDevice
                      ? CUmemLocation{kHost, 0}
                      : CUmemLocation{CU_MEM_LOCATION_TYPE_DEVICE, handle->device};
  return success;
}

inline int map_arrays(const CUarrayMapInfo* changes, unsigned count) {
  if (changes == nullptr) return invalid_value;
  for (unsigned i = 0; i < count; ++i) {
    const CUarrayMapInfo& change = changes[i];
    if (!is_array(change.resource)) return invalid_handle;
    Tile tile = {change.resource, {}};
    static_assert(sizeof change.subresource <= sizeof tile.part);
    std::memcpy(tile.part, &change.subresource, sizeof change.subresource);
    const int result = change.memOperationType == CU_MEM_OPERATION_TYPE_MAP
                           ? map_tile(tile, pointer_of(change.memHandle))
                           : unmap_tile(tile);
    if (result != success) return result;
  }
  return success;
}

// ---- Arrays

template <class Descriptor>
int get_shape(Descriptor* out, CUarray array) {
  ArrayShape shape = {};
  const int result = array_shape(&shape, array);
  if (out == nullptr) return invalid_value;
  if (result != success) return result;
  *out = {};
  out->Width = shape.width;
  out->Height = shape.height;
  out->Format = shape.format;
  out->NumChannels = shape.channels;
  if constexpr (requires { out->Depth; }) {
    out->Depth = shape.depth;
    out->Flags = shape.flags;
  }
  return success;
}

// Its memory is external: nothing is counted.
inline int external_mipmapped(CUmipmappedArray* out, CUexternalMemory memory,
                              const CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC* part) {
  if (!is_external(memory)) return invalid_handle;
  if (part == nullptr) return invalid_value;
  return view_mipmapped(handle_out(out), shape_of(&part->arrayDesc), part->numLevels);
}

// ---- Streams and graphs

template <class Id>
int get_capture_info(CUstream stream, int* status, Id* id, CUgraph* graph, std::size_t* count) {
  unsigned long long wide = 0;
  const int result =
      capture_info(stream, status, &wide, graph == nullptr ? nullptr : handle_out(graph));
  if (result == success && id != nullptr) *id = wide;
  if (result == success && count != nullptr) *count = 0;  // the order of nodes is not stored
  return result;
}

// Captures forbid nothing here, in any mode.
inline int exchange_capture_mode(int* mode) {
  static thread_local int t_mode = 0;
  if (mode == nullptr) return invalid_value;
  std::swap(*mode, t_mode);
  return success;
}

inline int add_any_node(CUgraphNode* node, CUgraph graph, CUgraphNodeParams* params) {
  if (params == nullptr) return invalid_value;
  switch (params->type) {
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
      return add_allocation(node, graph, &params->alloc);
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
      return add_free_node(handle_out(node), graph, params->free.dptr);
    case CU_GRAPH_NODE_TYPE_GRAPH:
      return add_child_node(handle_out(node), graph, params->graph.graph);
  }
  return add_other_node(handle_out(node), graph, params->type);
}

}  // namespace fake_gpu

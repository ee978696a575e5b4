// The core as both front ends see it, and the translations that they share.
#pragma once

#include <cstring>

#include "tests/fake_gpu/core/arrays.h"
#include "tests/fake_gpu/core/blocks.h"
#include "tests/fake_gpu/core/contexts.h"
#include "tests/fake_gpu/core/device_info.h"
#include "tests/fake_gpu/core/devices.h"
#include "tests/fake_gpu/core/front_end.h"
#include "tests/fake_gpu/core/graphs.h"
#include "tests/fake_gpu/core/pointer_info.h"
#include "tests/fake_gpu/core/pools.h"
#include "tests/fake_gpu/core/resolve.h"
#include "tests/fake_gpu/core/sharing.h"
#include "tests/fake_gpu/core/streams.h"
#include "tests/fake_gpu/core/virtual_memory.h"

namespace fake_gpu {

template <class Descriptor>
ArrayShape shape_of(const Descriptor* given) {
  if (given == nullptr) return {};
  ArrayShape shape = {given->Width, given->Height, 0, given->Format, given->NumChannels, 0};
  if constexpr (requires { given->Depth; }) {
    shape.depth = given->Depth;
    shape.flags = given->Flags;
  }
  return shape;
}

template <class PoolHandle>
int pool_of_device(PoolHandle* out, int device, int (*which)(void**, int)) {
  return is_device(device) ? which(handle_out(out), device) : int{invalid_device};
}

template <class HandleOut>
Handle** core_handle(HandleOut* out) {
  static_assert(sizeof(HandleOut) == sizeof(Handle*));
  return reinterpret_cast<Handle**>(out);
}

template <class Node, class Graph, class Params>
int add_allocation(Node* node, Graph graph, Params* params) {
  if (params == nullptr) return invalid_value;
  return add_allocation_node(handle_out(node), graph, address_out(&params->dptr), params->bytesize,
                             device_of(&params->poolProps.location));
}

// The structure begins with its flags.
inline int instantiate_with(void** out, void* graph, const void* params) {
  unsigned long long flags = 0;
  if (params == nullptr) return invalid_value;
  std::memcpy(&flags, params, sizeof flags);
  return instantiate(out, graph, flags);
}

}  // namespace fake_gpu

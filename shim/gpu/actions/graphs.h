// Graphs and their memory nodes.
#pragma once

#include "shim/gpu/actions/action.h"

#include "recorder/device_memory/graphs.h"
#include "recorder/device_memory/memory.h"
#include "recorder/devices/registry.h"

namespace oomrec::shim::gpu {

template <class Params>
struct GraphBlock {
  const void* graph;
  const Params* params;

  Allocation allocation() const noexcept { return {params == nullptr ? 0 : params->bytesize}; }
  void query(Call& call) const noexcept {
    if (params != nullptr)
      call.device = entry_of(call.vendor, device_of(&params->poolProps.location));
  }
  void on_success(InHook hook, const Call& call) const noexcept {
    if (params == nullptr) return;
    recorder::DeviceMemory memory = memory_of(call, DeviceKey::address, DeviceKind::block,
                                              key_of(params->dptr), params->bytesize);
    memory.context = 0;
    if (memory.name.key != 0) recorder::on_graph_block(hook, key_of(graph), memory);
  }
};
template <class Graph, class Params>
GraphBlock(Graph, Params*) -> GraphBlock<std::remove_const_t<Params>>;

template <class Address>
struct GraphFree {
  const void* graph;
  Address address;
  Allocation allocation() const noexcept { return {}; }
  void on_success(InHook hook, const Call& call) const noexcept {
    recorder::on_graph_free(hook, call.vendor, key_of(graph), key_of(address));
  }
};
template <class Graph, class Address>
GraphFree(Graph, Address) -> GraphFree<Address>;

// A node of any type. Both vendors use the same type numbers.
template <class Params>
struct GraphNode {
  static constexpr int kAllocation = 10, kRelease = 11;
  const void* graph;
  const Params* params;

  Allocation allocation() const noexcept {
    const bool allocates = params != nullptr && params->type == kAllocation;
    return allocates ? GraphBlock{graph, &params->alloc}.allocation() : Allocation{};
  }
  void query(Call& call) const noexcept {
    if (params != nullptr && params->type == kAllocation)
      GraphBlock{graph, &params->alloc}.query(call);
  }
  void on_success(InHook hook, const Call& call) const noexcept {
    if (params == nullptr) return;
    if (params->type == kAllocation) GraphBlock{graph, &params->alloc}.on_success(hook, call);
    if (params->type == kRelease) GraphFree{graph, params->free.dptr}.on_success(hook, call);
  }
};
template <class Graph, class Params>
GraphNode(Graph, Params*) -> GraphNode<std::remove_const_t<Params>>;

template <class Out>
struct Instantiated {
  const Out* out;
  const void* graph;
  Allocation allocation() const noexcept { return {}; }
  void on_success(InHook hook, const Call& call) const noexcept {
    if (value_at(out) != 0)
      recorder::on_graph_instantiated(hook, call.vendor, key_of(graph), value_at(out));
  }
};
template <class Out, class Graph>
Instantiated(Out*, Graph) -> Instantiated<Out>;

struct Launched {
  const void* executable;
  Allocation allocation() const noexcept { return {}; }
  void on_success(InHook hook, const Call& call) const noexcept {
    recorder::on_graph_launched(hook, call.api, call.vendor, key_of(executable));
  }
};

struct DestroyedGraph {
  const void* graph;
  void on_success(InHook hook, const Call& call) const noexcept {
    recorder::on_graph_destroyed(hook, call.vendor, key_of(graph));
  }
};

struct DestroyedExec {
  const void* executable;
  void on_success(InHook hook, const Call& call) const noexcept {
    recorder::on_executable_destroyed(hook, call.vendor, key_of(executable));
  }
};

// A graph with memory nodes can be neither copied nor made part of another.
template <class Out>
Fallible ClonedGraph(Out*, const void*) noexcept {
  return {};
}
inline Fallible ChildGraph(const void*, const void*) noexcept { return {}; }
inline Fallible GraphTrim(std::int32_t) noexcept { return {}; }

}  // namespace oomrec::shim::gpu

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

  Wants wants() const noexcept { return {params == nullptr ? 0 : params->bytesize}; }
  void ask(Call& call) const noexcept {
    if (params != nullptr)
      call.device = entry_of(call.vendor, device_of(&params->poolProps.location));
  }
  void done(InHook hook, const Call& call) const noexcept {
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
  Wants wants() const noexcept { return {}; }
  void done(InHook hook, const Call& call) const noexcept {
    recorder::on_graph_free(hook, call.vendor, key_of(graph), key_of(address));
  }
};
template <class Graph, class Address>
GraphFree(Graph, Address) -> GraphFree<Address>;

// A node of any type: the numbers of the types are those of both vendors.
template <class Params>
struct GraphNode {
  static constexpr int kAllocation = 10, kRelease = 11;
  const void* graph;
  const Params* params;

  Wants wants() const noexcept {
    const bool allocates = params != nullptr && params->type == kAllocation;
    return allocates ? GraphBlock{graph, &params->alloc}.wants() : Wants{};
  }
  void ask(Call& call) const noexcept {
    if (params != nullptr && params->type == kAllocation)
      GraphBlock{graph, &params->alloc}.ask(call);
  }
  void done(InHook hook, const Call& call) const noexcept {
    if (params == nullptr) return;
    if (params->type == kAllocation) GraphBlock{graph, &params->alloc}.done(hook, call);
    if (params->type == kRelease) GraphFree{graph, params->free.dptr}.done(hook, call);
  }
};
template <class Graph, class Params>
GraphNode(Graph, Params*) -> GraphNode<std::remove_const_t<Params>>;

template <class Out>
struct Instantiated {
  const Out* out;
  const void* graph;
  Wants wants() const noexcept { return {}; }
  void done(InHook hook, const Call& call) const noexcept {
    if (value_at(out) != 0)
      recorder::on_graph_instantiated(hook, call.vendor, key_of(graph), value_at(out));
  }
};
template <class Out, class Graph>
Instantiated(Out*, Graph) -> Instantiated<Out>;

struct Launched {
  const void* executable;
  Wants wants() const noexcept { return {}; }
  void done(InHook hook, const Call& call) const noexcept {
    recorder::on_graph_launched(hook, call.api, call.vendor, key_of(executable));
  }
};

struct DestroyedGraph {
  const void* graph;
  void done(InHook hook, const Call& call) const noexcept {
    recorder::on_graph_destroyed(hook, call.vendor, key_of(graph));
  }
};

struct DestroyedExec {
  const void* executable;
  void done(InHook hook, const Call& call) const noexcept {
    recorder::on_executable_destroyed(hook, call.vendor, key_of(executable));
  }
};

// A graph with memory nodes can be neither copied nor made part of another.
template <class Out>
Refusable ClonedGraph(Out*, const void*) noexcept {
  return {};
}
inline Refusable ChildGraph(const void*, const void*) noexcept { return {}; }
inline Refusable GraphTrim(std::int32_t) noexcept { return {}; }

}  // namespace oomrec::shim::gpu

// Stream-ordered memory from pools.
#pragma once

#include "shim/gpu/actions/memory.h"

#include "recorder/device_memory/graphs.h"
#include "recorder/device_memory/memory.h"
#include "recorder/device_memory/polling.h"
#include "recorder/devices/registry.h"

namespace oomrec::shim::gpu {

// On a stream that is being captured, the block belongs to the graph.
template <class Out>
struct OrderedBlock {
  Out* out;
  std::uint64_t bytes;
  const void* stream;
  void* pool;
  std::uint64_t graph = 0;

  Allocation allocation() const noexcept { return {bytes, DeviceKind::pooled}; }
  Site site(const Call& call) const noexcept {
    return site_of_stream(call.vendor, call.stream(stream));
  }
  std::uint32_t device(const Call& call) const noexcept {
    const HookScope scope;
    return recorder::device_of_pool(scope.in_hook(), {call.vendor, DeviceKey::pool, key_of(pool)});
  }
  void poll_own_pool(const Call& call) const noexcept {
    poll_pool(call.vendor, call.device, call.site.ordinal, pool);
  }
  void query(const Call& call) noexcept {
    graph = queries_of(call.vendor).capturing_graph(call.stream(stream));
  }
  void on_success(InHook hook, const Call& call) const noexcept {
    const DeviceKind kind = graph != 0 ? DeviceKind::block : DeviceKind::pooled;
    recorder::DeviceMemory memory = memory_of(call, DeviceKey::address, kind, value_at(out), bytes);
    if (memory.name.key == 0) return;
    memory.context = 0;
    if (graph != 0) return recorder::on_graph_block(hook, graph, memory);
    memory.owner = key_of(pool);
    recorder::on_device_allocate(hook, memory);
  }
};
template <class Out, class Bytes, class Stream, class PoolOrNone>
OrderedBlock(Out*, Bytes, Stream, PoolOrNone) -> OrderedBlock<Out>;

struct FreedOrdered {
  template <class Address>
  FreedOrdered(Address address, const void* on) noexcept : freed{key_of(address)}, stream(on) {}
  Released<DeviceKey::address> freed;
  const void* stream;
  std::uint64_t graph = 0;

  void prepare(const Call& call) noexcept {
    graph = queries_of(call.vendor).capturing_graph(call.stream(stream));
  }
  void before(InHook hook, const Call& call) noexcept {
    if (graph == 0) freed.before(hook, call);
  }
  void on_success(InHook hook, const Call& call) const noexcept {
    if (graph != 0) recorder::on_graph_free(hook, call.vendor, graph, freed.key);
  }
  void on_failure(InHook hook) const noexcept { freed.on_failure(hook); }
};

// A created pool has a known device; others become known at their first poll.
template <class Out, class Props>
struct Pool {
  const Out* out;
  const Props* props;

  Allocation allocation() const noexcept { return {}; }
  void query(Call& call) const noexcept {
    if (props != nullptr) call.device = entry_of(call.vendor, device_of(&props->location));
  }
  void on_success(InHook hook, const Call& call) const noexcept {
    recorder::on_pool_polled(hook, {call.vendor, DeviceKey::pool, value_at(out)}, call.device, 0);
  }
};
template <class Out, class Props>
Pool(Out*, Props*) -> Pool<Out, std::remove_const_t<Props>>;

template <class Out>
Fallible ImportedPool(Out*) noexcept {
  return {};
}
template <class Out>
struct DevicePool {
  const Out* out;
  std::int32_t ordinal;

  Allocation allocation() const noexcept { return {}; }
  void query(const Call& call) const noexcept {
    if (ordinal >= 0 && value_at(out) != 0)
      poll_pool(call.vendor, entry_of(call.vendor, ordinal), ordinal, *out);
  }
};
template <class Out>
DevicePool(Out*, std::int32_t) -> DevicePool<Out>;

inline Fallible SelectedPool(std::int32_t, const void*) noexcept { return {}; }

struct DestroyedPool {
  const void* pool;
  void on_success(InHook hook, const Call& call) const noexcept {
    recorder::on_pool_end(hook, call.api, {call.vendor, DeviceKey::pool, key_of(pool)});
  }
};

struct TrimmedPool {
  void* pool;
  void query(const Call& call) const noexcept {
    const Site site = current_site(call.vendor);
    poll_pool(call.vendor, entry_of(call.vendor, site.ordinal), site.ordinal, pool);
  }
};

}  // namespace oomrec::shim::gpu

#include "recorder/device_memory/memory.h"

#include "recorder/device_memory/accounting.h"
#include "recorder/device_memory/warning.h"
#include "recorder/failures/failures.h"
#include "recorder/fault_injection/fault_injection.h"
#include "recorder/stack/stack.h"
#include "recorder/state/state.h"
#include "recorder/state/thread_state.h"

namespace oomrec::recorder {

using live::DeviceBlock;
using session::Device;
using session::g_session;

namespace {

// Counts out the entry that still had a name which the driver has reused.
void count_replaced_out(InHook hook, ThreadState* thread, const DeviceBlock& gone) noexcept {
  if (gone.name.key != 0 && gone.is_live()) count_out(hook, thread, gone);
}

// The block may be one of a launched graph, which allocates it again at its next launch.
bool release_graph_block(InHook hook, const DeviceName& name, DeviceBlock& block) noexcept {
  if (name.what != DeviceKey::address) return false;
  bool was_live = false;
  g_state.device_blocks.change(hook, {name.vendor, DeviceKey::graph_block, name.key},
                               [&](DeviceBlock& entry) noexcept {
                                 was_live = entry.is_live();
                                 block = entry;
                                 entry.flags |= session::kDeviceDormant;
                                 return entry.owner != 0;
                               });
  return was_live;
}

// Drops a reference; the last one removes the entry.
bool release_entry(InHook hook, const DeviceName& name, DeviceReleased& released) noexcept {
  return g_state.device_blocks.change(hook, name, [&](DeviceBlock& entry) noexcept {
    released.block = entry;
    released.gone = --entry.references == 0;
    return !released.gone;
  });
}

// HIP frees device and host memory by the same function.
DeviceName other_name_of(const DeviceName& name) noexcept {
  if (name.vendor != Vendor::hip) return {};
  if (name.what == DeviceKey::address) return {name.vendor, DeviceKey::host, name.key};
  if (name.what == DeviceKey::host) return {name.vendor, DeviceKey::address, name.key};
  return {};
}

bool release(InHook hook, const DeviceName& name, DeviceReleased& released) noexcept {
  if (release_entry(hook, name, released)) return true;
  const DeviceName other = other_name_of(name);
  if (other.key != 0 && release_entry(hook, other, released)) return true;
  released.gone = release_graph_block(hook, name, released.block);
  return released.gone;
}

}  // namespace

DeviceReleased remove_entry(InHook hook, Api api, const DeviceName& name) noexcept {
  DeviceReleased released;
  if (!release(hook, name, released) || !released.gone) return released;
  ThreadState* const thread = current_thread(hook);
  append_release_event(thread, api, released.block);
  if (released.block.is_live()) count_out(hook, thread, released.block);
  publish_device(hook, thread, name.vendor);
  return released;
}

bool has_device_limit_or_rules() noexcept {
  return g_state.options.limit_gpu[0] != '\0' || has_fault_rules();
}

bool admits_on_device(InHook hook, Request& request, DeviceKind kind) noexcept {
  if (phase() == Phase::off || !devices_ready(hook)) return true;
  request.rule = failing_rule(hook, request);
  return request.rule == 0 && is_within_device_limit(hook, request, kind);
}

bool is_within_device_limit(InHook, const Request& request, DeviceKind kind) noexcept {
  const bool counts = kind == DeviceKind::block || kind == DeviceKind::pooled;
  if (!counts || !is_known_device(request.device)) return true;
  const Device& device = g_session.devices.at(request.device);
  if (device.limit_bytes == 0) return true;
  std::uint64_t more = request.bytes;
  if (kind == DeviceKind::pooled) {  // what its pools have reserved is counted already
    const std::int64_t used = device.pool_used_bytes;
    const std::uint64_t reserved = device.pool_reserved_bytes;
    const std::uint64_t available = used >= 0 && reserved > static_cast<std::uint64_t>(used)
                                        ? reserved - static_cast<std::uint64_t>(used)
                                        : 0;
    more = more > available ? more - available : 0;
  }
  std::uint64_t sum = 0;
  return !__builtin_add_overflow(device.counted_bytes(), more, &sum) && sum <= device.limit_bytes;
}

void on_device_allocate(InHook hook, const DeviceMemory& memory) noexcept {
  if (phase() == Phase::off || !devices_ready(hook)) return;
  NodeScope nodes{hook};
  const DeviceCaller from = device_caller(hook, nodes);
  const Space space = space_of(memory.name.vendor, memory.kind);
  DeviceBlock block;
  block.name = memory.name;
  block.bytes = memory.bytes;
  block.context = memory.context;
  block.owner = memory.owner;
  block.device = memory.device;
  block.birth_s = from.thread != nullptr ? from.thread->birth_s() : 0;
  block.kind = memory.kind;
  if (from.node != 0 && has_memory(block))
    block.holder = g_state.holders.find_or_add(hook, from.node, space, memory.api, 0);
  DeviceBlock replaced;
  if (!g_state.device_blocks.insert(hook, block, replaced)) return drop();
  count_replaced_out(hook, from.thread, replaced);
  tally_call(memory.api, memory.bytes);
  if (from.thread != nullptr) {
    append_device_event(*from.thread, EventKind::allocate, memory.api, space, block.device,
                        memory.name.key, memory.bytes, from.node);
  }
  count_in(hook, from.thread, block);
  publish_device(hook, from.thread, memory.name.vendor);
  resolve_served_device(hook, memory.api, memory.bytes);
  watch_device(hook, block.device);
}

DeviceReleased on_device_free(InHook hook, Api api, const DeviceName& name) noexcept {
  if (phase() == Phase::off || name.key == 0 || !devices_ready(hook)) return {};
  tally_call(api, 0);
  return remove_entry(hook, api, name);
}

void restore_on_device(InHook hook, const DeviceReleased& released) noexcept {
  if (phase() == Phase::off || released.block.name.key == 0) return;
  if (!released.gone) {
    on_device_retain(hook, released.block.name);
    return;
  }
  DeviceBlock replaced;
  if (!g_state.device_blocks.insert(hook, released.block, replaced)) return drop();
  if (!released.block.is_live() || !has_memory(released.block)) return;
  ThreadState* const thread = current_thread(hook);
  count_back_in(hook, thread, released.block);
  publish_device(hook, thread, released.block.name.vendor);
}

bool on_device_retain(InHook hook, const DeviceName& handle) noexcept {
  return g_state.device_blocks.change(hook, handle, [](DeviceBlock& entry) noexcept {
    ++entry.references;
    return true;
  });
}

}  // namespace oomrec::recorder

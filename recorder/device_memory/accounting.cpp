#include "recorder/device_memory/accounting.h"

#include "recorder/state/clock.h"
#include "recorder/state/counters.h"

namespace oomrec::recorder {

using live::DeviceBlock;
using session::Device;
using session::g_session;

namespace {

std::int64_t signed_bytes(std::uint64_t bytes) noexcept { return static_cast<std::int64_t>(bytes); }

void add_to_device(std::uint32_t entry, DeviceKind kind, std::int64_t bytes) noexcept {
  if (!is_known_device(entry)) return;
  Device& device = g_session.devices.at(entry);
  if (kind == DeviceKind::block) device.block_bytes.fetch_add(bytes, std::memory_order_relaxed);
  if (kind == DeviceKind::pooled)
    device.pool_used_bytes.fetch_add(bytes, std::memory_order_relaxed);
  if (kind == DeviceKind::managed) device.managed_bytes.fetch_add(bytes, std::memory_order_relaxed);
  if (bytes > 0) raise_to(device.peak_bytes, device.counted_bytes());
}

void count_change(ThreadState* thread, Space space, const Delta& delta) noexcept {
  thread != nullptr ? count_quietly(*thread, space, delta) : count_unlaned(space, delta);
}

}  // namespace

Space space_of(Vendor vendor, DeviceKind kind) noexcept {
  const auto first = static_cast<std::uint8_t>(vendor == Vendor::cuda ? Space::cuda : Space::hip);
  const unsigned further = kind == DeviceKind::host                                       ? 1
                           : kind == DeviceKind::imported || kind == DeviceKind::reserved ? 2
                                                                                          : 0;
  return static_cast<Space>(first + further);
}

DeviceCaller device_caller(InHook hook, NodeScope& nodes) noexcept {
  DeviceCaller from{current_thread(hook)};
  if (from.thread == nullptr) return from;
  nodes.begin(*from.thread);
  maybe_read_clock(hook, *from.thread);
  from.node = stack::capture(hook, from.thread->stacks, from.thread->root(hook));
  from.thread->mark_served(from.node);
  return from;
}

void tally_call(Api api, std::uint64_t bytes) noexcept {
  const auto entry = static_cast<std::uint32_t>(api) + 1;
  if (entry >= g_session.api_tallies.size()) return;
  session::Tally& tally = g_session.api_tallies.at(entry);
  tally.count.fetch_add(1, std::memory_order_relaxed);
  tally.bytes.fetch_add(bytes, std::memory_order_relaxed);
}

void append_release_event(ThreadState* thread, Api api, const DeviceBlock& block) noexcept {
  if (thread == nullptr) return;
  append_device_event(*thread, EventKind::free, api, space_of(block.name.vendor, block.kind),
                      block.device, block.name.key, block.bytes, 0);
}

void count_in(InHook hook, ThreadState* thread, const DeviceBlock& block) noexcept {
  if (!has_memory(block)) return;
  if (block.holder != 0) g_state.holders.grow(hook, block.holder, block.bytes, 1);
  add_to_device(block.device, block.kind, signed_bytes(block.bytes));
  count_change(thread, space_of(block.name.vendor, block.kind),
               {block.bytes, 1, 0, block.bytes, 0});
}

void count_out(InHook hook, ThreadState* thread, const DeviceBlock& block) noexcept {
  if (!has_memory(block)) return;
  if (block.holder != 0) g_state.holders.shrink(hook, block.holder, block.bytes, 1);
  add_to_device(block.device, block.kind, -signed_bytes(block.bytes));
  count_change(thread, space_of(block.name.vendor, block.kind), {0, 0, 1, 0, block.bytes});
}

void count_part_out(InHook hook, ThreadState* thread, const DeviceBlock& block) noexcept {
  g_state.holders.shrink_at_most(hook, block.holder, block.bytes, 0);
  add_to_device(block.device, block.kind, -signed_bytes(block.bytes));
  count_change(thread, space_of(block.name.vendor, block.kind), {0, 0, 0, 0, block.bytes});
}

void count_back_in(InHook hook, ThreadState* thread, const DeviceBlock& block) noexcept {
  if (block.holder != 0) g_state.holders.restore(hook, block.holder, block.bytes, 1);
  add_to_device(block.device, block.kind, signed_bytes(block.bytes));
  count_change(thread, space_of(block.name.vendor, block.kind),
               {0, 0, -std::uint64_t{1}, 0, -block.bytes});
}

void publish_device(InHook hook, ThreadState* thread, Vendor vendor) noexcept {
  if (thread == nullptr) return;
  for (const DeviceKind kind : {DeviceKind::block, DeviceKind::host, DeviceKind::reserved}) {
    const Space space = space_of(vendor, kind);
    if (thread->unpublished[static_cast<std::size_t>(space)].load(std::memory_order_relaxed) != 0)
      publish(hook, *thread, space);
  }
  leave(thread);
}

void add_to_pools(std::uint32_t device, std::uint64_t bytes) noexcept {
  if (!is_known_device(device)) return;
  g_session.devices.at(device).pool_reserved_bytes.fetch_add(bytes, std::memory_order_relaxed);
}

}  // namespace oomrec::recorder

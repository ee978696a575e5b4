#include "recorder/device_memory/lifetimes.h"

#include "recorder/device_memory/accounting.h"
#include "recorder/device_memory/memory.h"
#include "recorder/stack/stack.h"
#include "recorder/state/state.h"
#include "recorder/state/thread_state.h"

namespace oomrec::recorder {

using live::DeviceBlock;

namespace {

// Recorded in the space of addresses, because a mapping allocates no memory.
void append_mapping_event(EventKind kind, const DeviceCaller& from, Api api,
                          const DeviceBlock& mapping) noexcept {
  if (from.thread == nullptr) return;
  append_device_event(*from.thread, kind, api, space_of(mapping.name.vendor, DeviceKind::reserved),
                      mapping.device, mapping.name.key, mapping.bytes, from.node);
}

// Removes all entries for which is_one(block) is true.
template <class IsOne>
void remove_all(InHook hook, Api api, Vendor vendor, IsOne is_one) noexcept {
  ThreadState* const thread = current_thread(hook);
  g_state.device_blocks.for_each(hook, [&](const DeviceBlock& block) noexcept {
    if (block.name.vendor != vendor || !is_one(block)) return Then::leave;
    if (block.name.what == DeviceKey::pool) add_to_pools(block.device, -block.bytes);
    if (block.is_live() && has_memory(block)) {
      append_release_event(thread, api, block);
      count_out(hook, thread, block);
    }
    return Then::gone;
  });
  publish_device(hook, thread, vendor);
}

}  // namespace

void on_device_map(InHook hook, Api api, Vendor vendor, std::uint64_t address, std::uint64_t bytes,
                   std::uint64_t handle) noexcept {
  if (phase() == Phase::off || address == 0 || !devices_ready(hook)) return;
  NodeScope nodes{hook};
  const DeviceCaller from = device_caller(hook, nodes);
  const DeviceName memory{vendor, DeviceKey::handle, handle};
  tally_call(api, bytes);
  DeviceBlock mapped, mapping, replaced;
  if (g_state.device_blocks.find(hook, memory, mapped)) mapping.device = mapped.device;
  mapping.name = {vendor, DeviceKey::mapping, address};
  mapping.bytes = bytes;
  mapping.owner = handle;
  on_device_retain(hook, memory);
  if (!g_state.device_blocks.insert(hook, mapping, replaced)) return drop();
  if (replaced.name.key != 0) remove_entry(hook, api, {vendor, DeviceKey::handle, replaced.owner});
  append_mapping_event(EventKind::map, from, api, mapping);
}

void on_device_unmap(InHook hook, Api api, Vendor vendor, std::uint64_t address,
                     std::uint64_t bytes) noexcept {
  if (phase() == Phase::off || !devices_ready(hook)) return;
  tally_call(api, 0);
  DeviceBlock mapping;
  for (std::uint64_t at = address; at - address < bytes; at += mapping.bytes) {
    if (!g_state.device_blocks.remove(hook, {vendor, DeviceKey::mapping, at}, mapping)) return;
    append_mapping_event(EventKind::unmap, {current_thread(hook)}, api, mapping);
    remove_entry(hook, api, {vendor, DeviceKey::handle, mapping.owner});
    if (mapping.bytes == 0) return;
  }
}

void on_context_end(InHook hook, Api api, Vendor vendor, std::uint64_t context) noexcept {
  if (phase() == Phase::off || context == 0 || !devices_ready(hook)) return;
  tally_call(api, 0);
  remove_all(hook, api, vendor,
             [=](const DeviceBlock& block) noexcept { return block.context == context; });
}

void on_device_reset(InHook hook, Api api, Vendor vendor, std::uint64_t context,
                     std::uint32_t device) noexcept {
  if (phase() == Phase::off || !devices_ready(hook)) return;
  tally_call(api, 0);
  remove_all(hook, api, vendor, [=](const DeviceBlock& block) noexcept {
    const bool of_pools = block.kind == DeviceKind::pooled || block.name.what == DeviceKey::pool ||
                          block.name.what == DeviceKey::graph_block;
    return (context != 0 && block.context == context) ||
           (device != 0 && block.device == device && of_pools);
  });
}

}  // namespace oomrec::recorder

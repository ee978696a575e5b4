#include "recorder/device_memory/pools.h"

#include "recorder/device_memory/accounting.h"
#include "recorder/state/state.h"

namespace oomrec::recorder {

using live::DeviceBlock;
using session::g_session;

void on_pool_polled(InHook hook, const DeviceName& pool, std::uint32_t device,
                    std::uint64_t reserved_bytes) noexcept {
  if (phase() == Phase::off || pool.key == 0 || !devices_ready(hook)) return;
  std::uint64_t before = 0;
  const bool known = g_state.device_blocks.change(hook, pool, [&](DeviceBlock& entry) noexcept {
    before = entry.bytes;
    device = entry.device;
    entry.bytes = reserved_bytes;
    return true;
  });
  if (!known) {
    DeviceBlock entry, replaced;
    entry.name = pool;
    entry.device = device;
    entry.bytes = reserved_bytes;
    if (!g_state.device_blocks.insert(hook, entry, replaced)) return drop();
  }
  add_to_pools(device, reserved_bytes - before);
}

void on_pool_end(InHook hook, Api api, const DeviceName& pool) noexcept {
  if (phase() == Phase::off || !devices_ready(hook)) return;
  tally_call(api, 0);
  DeviceBlock entry;
  if (g_state.device_blocks.remove(hook, pool, entry)) add_to_pools(entry.device, -entry.bytes);
}

std::uint32_t device_of_pool(InHook hook, const DeviceName& pool) noexcept {
  DeviceBlock entry;
  if (phase() == Phase::off || !devices_ready(hook)) return 0;
  return g_state.device_blocks.find(hook, pool, entry) ? entry.device : 0;
}

std::size_t pools_of(InHook hook, Vendor vendor, std::uint32_t device,
                     std::span<std::uint64_t> handles) noexcept {
  if (phase() == Phase::off || !devices_ready(hook)) return 0;
  using Then = live::DeviceBlocks::Then;
  std::size_t found = 0;
  g_state.device_blocks.for_each(hook, [&](const DeviceBlock& block) noexcept {
    if (block.name.what == DeviceKey::pool && block.name.vendor == vendor &&
        block.device == device && found < handles.size())
      handles[found++] = block.name.key;
    return Then::leave;
  });
  return found;
}

}  // namespace oomrec::recorder

// Running totals of memory for events.json: one account for the host, one for each device.
//
// PyTorch allocates from what the driver gave it. Where PyTorch reports its totals, they count as
// allocated and the driver's as reserved. The sums wrap if the file is forged.
#pragma once

#include <algorithm>
#include <cstdint>

#include "common/session/view.h"
#include "common/text/device_text.h"

namespace oomrec::bundle {

struct Account {
  std::uint64_t driver_bytes = 0;  // allocated from the driver, or the host's allocator
  std::uint64_t torch_bytes = 0;   // the part of driver_bytes that PyTorch has allocated
  std::uint64_t unused_bytes = 0;  // reserved, but not allocated
  bool has_torch_totals = false;   // PyTorch reports its allocations

  std::int64_t allocated() const noexcept {
    return std::max<std::int64_t>(
        0, static_cast<std::int64_t>(has_torch_totals ? torch_bytes : driver_bytes));
  }
  std::int64_t reserved() const noexcept {
    return std::max(allocated(), static_cast<std::int64_t>(driver_bytes + unused_bytes));
  }
};

// Bytes that the event added (positive) or removed (negative). Address space does not count as
// memory.
inline std::int64_t change_of(const session::Event& event) noexcept {
  if (is_address_space(event.space)) return 0;
  const auto bytes = static_cast<std::int64_t>(event.bytes);
  const bool more = event.kind == EventKind::allocate || event.kind == EventKind::map;
  const bool less = event.kind == EventKind::free || event.kind == EventKind::unmap;
  return more ? bytes : less ? -bytes : 0;
}

class Accounts {
 public:
  // Loads the current totals. Cost: one pass over the lanes for each space.
  void load(const session::View& view) noexcept {
    std::uint64_t device_total = 0, torch_total = live(view, Space::torch);
    for (std::size_t i = 0; i < kSpaceCount; ++i) {
      const auto space = static_cast<Space>(i);
      if (is_on_host(space)) {
        host_.driver_bytes += live(view, space);
      } else if (space != Space::torch && !is_address_space(space)) {
        device_total += live(view, space);
      }
    }
    host_.unused_bytes =
        view.header().spaces[static_cast<std::size_t>(Space::map)].reserved_bytes.load(
            std::memory_order_relaxed);
    const auto count =
        std::min<std::uint64_t>(view.count(session::TableId::devices), kMaxDevices + 1);
    session::Device device;
    for (std::uint32_t i = 1; i < count; ++i) {
      if (!text::read_device(view, i, device)) continue;
      devices_[i] = account_of(device);
      device_total -= devices_[i].driver_bytes;
      torch_total -= devices_[i].torch_bytes;
    }
    devices_[0] = {device_total, torch_total, 0, static_cast<std::int64_t>(device_total) <= 0};
  }

  Account& of(Space space, std::uint32_t device) noexcept {
    return is_on_host(space) ? host_ : devices_[device <= kMaxDevices ? device : 0];
  }

  void apply(const session::Event& event) noexcept { add(event, change_of(event)); }
  void revert(const session::Event& event) noexcept { add(event, -change_of(event)); }

 private:
  // Further devices share the account of unknown ones.
  static constexpr std::size_t kMaxDevices = 16;

  static std::uint64_t live(const session::View& view, Space space) noexcept {
    return static_cast<std::uint64_t>(view.totals(space).live_bytes);
  }

  static Account account_of(const session::Device& device) noexcept {
    const auto in_pools = static_cast<std::uint64_t>(device.pool_used_bytes.load());
    const auto managed = static_cast<std::uint64_t>(device.managed_bytes.load());
    const std::uint64_t by_pools = device.pool_reserved_bytes;
    return {static_cast<std::uint64_t>(device.block_bytes.load()) + in_pools + managed,
            device.torch_allocated_bytes, by_pools > in_pools ? by_pools - in_pools : 0,
            device.torch_reserved_bytes != 0};
  }

  void add(const session::Event& event, std::int64_t change) noexcept {
    Account& account = of(event.space, event.device);
    (event.space == Space::torch ? account.torch_bytes : account.driver_bytes) +=
        static_cast<std::uint64_t>(change);
  }

  Account host_;
  Account devices_[kMaxDevices + 1];  // [0]: unknown devices, and tensors on the host
};

}  // namespace oomrec::bundle

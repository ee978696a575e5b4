// Who has how much after an event: the host has one account, each device one of its own.
//
// What PyTorch allocates lies inside what the driver gave: where it told its totals they are what
// is allocated. Sums of a forged file may wrap.
#pragma once

#include <algorithm>
#include <cstdint>

#include "common/session/view.h"
#include "common/text/device_text.h"

namespace oomrec::bundle {

struct Account {
  std::uint64_t given = 0;         // by the allocator, or the driver
  std::uint64_t inside = 0;        // of that by PyTorch
  std::uint64_t held_besides = 0;  // reserved, and given to nobody
  bool divided = false;            // PyTorch tells what it gives

  std::int64_t allocated() const noexcept {
    return std::max<std::int64_t>(0, static_cast<std::int64_t>(divided ? inside : given));
  }
  std::int64_t reserved() const noexcept {
    return std::max(allocated(), static_cast<std::int64_t>(given + held_besides));
  }
};

// Bytes that the event added, or took away. Address space is nothing that anybody has.
inline std::int64_t change_of(const session::Event& event) noexcept {
  if (is_address_space(event.space)) return 0;
  const auto bytes = static_cast<std::int64_t>(event.bytes);
  const bool more = event.kind == EventKind::allocate || event.kind == EventKind::map;
  const bool less = event.kind == EventKind::free || event.kind == EventKind::unmap;
  return more ? bytes : less ? -bytes : 0;
}

class Accounts {
 public:
  // As they are now. Cost: a pass over the lanes for each space.
  void open(const session::View& view) noexcept {
    std::uint64_t of_devices = 0, of_torch = live(view, Space::torch);
    for (std::size_t i = 0; i < kSpaceCount; ++i) {
      const auto space = static_cast<Space>(i);
      if (is_on_host(space)) {
        host_.given += live(view, space);
      } else if (space != Space::torch && !is_address_space(space)) {
        of_devices += live(view, space);
      }
    }
    host_.held_besides =
        view.header().spaces[static_cast<std::size_t>(Space::map)].reserved_bytes.load(
            std::memory_order_relaxed);
    const auto known =
        std::min<std::uint64_t>(view.count(session::TableId::devices), kMostDevices + 1);
    session::Device device;
    for (std::uint32_t i = 1; i < known; ++i) {
      if (!text::read_device(view, i, device)) continue;
      devices_[i] = account_of(device);
      of_devices -= devices_[i].given;
      of_torch -= devices_[i].inside;
    }
    devices_[0] = {of_devices, of_torch, 0, static_cast<std::int64_t>(of_devices) <= 0};
  }

  Account& of(Space space, std::uint32_t device) noexcept {
    return is_on_host(space) ? host_ : devices_[device <= kMostDevices ? device : 0];
  }

  void book(const session::Event& event) noexcept { add(event, change_of(event)); }
  void take_back(const session::Event& event) noexcept { add(event, -change_of(event)); }

 private:
  static constexpr std::size_t kMostDevices = 16;  // of more, the rest is in the account of none

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
    (event.space == Space::torch ? account.inside : account.given) +=
        static_cast<std::uint64_t>(change);
  }

  Account host_;
  Account devices_[kMostDevices + 1];  // [0]: of those that are not known, and tensors of the host
};

}  // namespace oomrec::bundle

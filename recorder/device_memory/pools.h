// Pools of devices: whose they are, and what they hold.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "recorder/devices/registry.h"

namespace oomrec::recorder {

// What a pool holds, as the driver tells it. A pool that is met is one that holds nothing yet.
void on_pool_polled(InHook, const DeviceName& pool, std::uint32_t device,
                    std::uint64_t reserved_bytes) noexcept;
void on_pool_end(InHook, Api, const DeviceName& pool) noexcept;
// Whose memory it gives; 0: not known.
std::uint32_t device_of_pool(InHook, const DeviceName& pool) noexcept;
// The handles of a device's known pools: how many of them are in `handles` now.
std::size_t pools_of(InHook, Vendor, std::uint32_t device,
                     std::span<std::uint64_t> handles) noexcept;

}  // namespace oomrec::recorder

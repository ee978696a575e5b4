// Pools of devices: which device they belong to, and what they have reserved.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "recorder/devices/registry.h"

namespace oomrec::recorder {

// What a pool has reserved, as the driver says. An unknown pool gets an entry.
void on_pool_polled(InHook, const DeviceName& pool, std::uint32_t device,
                    std::uint64_t reserved_bytes) noexcept;
void on_pool_end(InHook, Api, const DeviceName& pool) noexcept;
// The device whose memory it serves; 0: not known.
std::uint32_t device_of_pool(InHook, const DeviceName& pool) noexcept;
// Copies the handles of a device's pools to `handles`: how many.
std::size_t pools_of(InHook, Vendor, std::uint32_t device,
                     std::span<std::uint64_t> handles) noexcept;

}  // namespace oomrec::recorder

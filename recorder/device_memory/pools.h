// Pools of devices: which device they belong to, and what they have reserved.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "recorder/devices/registry.h"

namespace oomrec::recorder {

// Records the bytes that a pool has reserved, by the driver's figure. An unknown pool gets an
// entry.
void on_pool_polled(InHook, const DeviceName& pool, std::uint32_t device,
                    std::uint64_t reserved_bytes) noexcept;
void on_pool_end(InHook, Api, const DeviceName& pool) noexcept;
// The device on which it allocates; 0: unknown.
std::uint32_t device_of_pool(InHook, const DeviceName& pool) noexcept;
// Copies the handles of a device's pools to `handles`, and returns their number.
std::size_t pools_of(InHook, Vendor, std::uint32_t device,
                     std::span<std::uint64_t> handles) noexcept;

}  // namespace oomrec::recorder

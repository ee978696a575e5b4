// Figures that only the driver knows, of devices and of their pools: when to poll it, and what it
// has said.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "common/system/hook_scope.h"
#include "recorder/devices/registry.h"

namespace oomrec::recorder {

// Whether to poll the driver for the device's free and total bytes: at most ten times a second, and
// always after a failure; never in a sandbox.
enum class PollAfter : std::uint8_t { success, failure };
bool should_poll(InHook, std::uint32_t device, PollAfter) noexcept;
void on_device_polled(InHook, std::uint32_t device, std::uint64_t free_bytes,
                      std::uint64_t total_bytes) noexcept;
// The same for a pool that has just served a request, and has grown or counts against a limit.
bool should_poll_pool(InHook, std::uint32_t device) noexcept;

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

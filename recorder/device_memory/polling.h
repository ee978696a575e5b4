// When to poll the driver for figures that only it knows, and the results.
#pragma once

#include <cstdint>

#include "common/system/hook_scope.h"

namespace oomrec::recorder {

// Whether to poll the driver for the device's free and total bytes: at most ten times a second, and
// always after a failure; never in a sandbox.
enum class PollAfter : std::uint8_t { success, failure };
bool should_poll(InHook, std::uint32_t device, PollAfter) noexcept;
void on_device_polled(InHook, std::uint32_t device, std::uint64_t free_bytes,
                      std::uint64_t total_bytes) noexcept;
// The same for a pool that has just served a request, and has grown or counts against a limit.
bool should_poll_pool(InHook, std::uint32_t device) noexcept;

}  // namespace oomrec::recorder

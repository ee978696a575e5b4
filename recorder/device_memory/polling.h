// When to ask the driver for what it alone knows, and what it answered.
#pragma once

#include <cstdint>

#include "common/system/hook_scope.h"

namespace oomrec::recorder {

// Whether to ask the driver for the device's free and total bytes: at most ten times a second, and
// always after a failure; never in a sandbox.
enum class PollAfter : std::uint8_t { success, failure };
bool should_poll(InHook, std::uint32_t device, PollAfter) noexcept;
void on_device_polled(InHook, std::uint32_t device, std::uint64_t free_bytes,
                      std::uint64_t total_bytes) noexcept;
// The same for a pool that has just served a request: it has grown, or a limit counts what it
// holds.
bool should_poll_pool(InHook, std::uint32_t device) noexcept;

}  // namespace oomrec::recorder

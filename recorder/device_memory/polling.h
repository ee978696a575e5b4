// When the driver should be asked for what it alone knows, and what it answered.
#pragma once

#include <cstdint>

#include "common/system/hook_scope.h"

namespace oomrec::recorder {

// Whether the driver should be asked for the device's free and total bytes: at most ten times a
// second, and at once where a request was refused; never in a sandbox.
bool should_poll(InHook, std::uint32_t device, bool refused) noexcept;
void on_device_polled(InHook, std::uint32_t device, std::uint64_t free_bytes,
                      std::uint64_t total_bytes) noexcept;
// The same of a pool that has just given memory: it has grown, or a limit counts what it holds.
bool should_poll_pool(InHook, std::uint32_t device) noexcept;

}  // namespace oomrec::recorder

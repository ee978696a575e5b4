// Writes a bundle before a device is full, where the user asked to be warned.
//
// A request of a full device fails, and that failure has a bundle of its own. So a device is
// watched only with
// --warn, as --limit is. There is one bundle until the device is some percent emptier again. Only
// the driver knows how full a device is, and it is polled now and then. In between the recorder
// adds what this process has allocated and freed since, to decide when to poll, and when the device
// is emptier.
#pragma once

#include <cstdint>

#include "common/system/hook_scope.h"

namespace oomrec::recorder {

// The device's figures have changed: writes a bundle if one is due, takes nanoseconds otherwise.
// Not under a lock.
void watch_device(InHook, std::uint32_t device) noexcept;
// Whether to poll out of turn: by what this process has allocated since, the device may be nearly
// full.
bool expects_full(std::uint32_t device) noexcept;
void reset_device_warnings_after_fork(InHook) noexcept;

}  // namespace oomrec::recorder

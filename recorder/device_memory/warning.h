// Writes a bundle before a device is full, if the user requested a warning.
//
// A request to a full device fails, and that failure writes a bundle anyway. So a device, like
// --limit, is watched only with --warn. After a bundle the next one is due once the device has
// become some percent emptier. Only the driver knows how full a device is, and the recorder polls
// it rarely. In between the recorder adds what this process has allocated and freed, to decide when
// to poll, and whether the device has become emptier.
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

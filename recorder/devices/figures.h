// The figures of a device: for a failure, and over time.
#pragma once

#include <cstdint>

#include "common/session/device_layout.h"
#include "common/system/hook_scope.h"

namespace oomrec::recorder {

// The evidence for a failure on the device.
session::DeviceEvidence device_evidence(std::uint32_t device, std::uint64_t now_ns) noexcept;

// Written with a point of the time line. `entry`: in device_points; 0 adds one, and returns its
// number there.
void write_device_point(InHook, std::uint64_t time_ns, std::uint32_t& entry) noexcept;

}  // namespace oomrec::recorder

// The figures of a device: for a failure, and over time.
#pragma once

#include <cstdint>

#include "common/session/devices.h"
#include "common/system/hook_scope.h"

namespace oomrec::recorder {

// As evidence of a failure there.
session::DeviceEvidence device_evidence(std::uint32_t device, std::uint64_t now_ns) noexcept;

// Beside a point of the time line: `entry` of device_points; 0: a new one, whose number is returned
// in it.
void write_device_point(InHook, std::uint64_t time_ns, std::uint32_t& entry) noexcept;

}  // namespace oomrec::recorder

// The figures of a device: for a failure, and over time.
#pragma once

#include <cstdint>

#include "common/session/devices.h"
#include "common/system/hook_scope.h"

namespace oomrec::recorder {

// The figures of a device for a failure there.
session::DeviceEvidence device_evidence(std::uint32_t device, std::uint64_t now_ns) noexcept;

// Beside a point of the time line: entry `place` of device_points, 0 for a new one.
void write_device_point(InHook, std::uint64_t time_ns, std::uint32_t& entry) noexcept;

}  // namespace oomrec::recorder

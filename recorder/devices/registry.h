// The drivers that the program has reached, and their devices with their figures, as entries of the
// session.
//
// Nothing here calls a driver: the callers pass what only a driver knows.
#pragma once

#include <cstdint>
#include <string_view>

#include "common/session/device_layout.h"
#include "common/system/hook_scope.h"
#include "recorder/live/device_blocks.h"
#include "recorder/session/writer.h"

namespace oomrec::recorder {

using live::DeviceName;
using session::DeviceKey;
using session::DeviceKind;
using session::Vendor;

enum class LookUp : std::uint8_t { linked, dlsym, resolver };
void on_look_up(InHook, Vendor, LookUp) noexcept;  // of one of the wrapped functions
void describe_driver(InHook, Vendor, std::string_view path, std::uint32_t version,
                     std::uint32_t wrapped) noexcept;

// The entry of the driver's device `ordinal`; 0: it is not described yet, or the table is full.
std::uint32_t device_entry(InHook, Vendor, std::int32_t ordinal) noexcept;
struct DeviceIdentity {
  Vendor vendor;
  std::int32_t ordinal;
  std::uint8_t uuid[16];
  char name[64];  // NUL-terminated
};
std::uint32_t describe_device(InHook, const DeviceIdentity&) noexcept;

// Whether the session has the tables of devices. devices_ready() opens them.
bool devices_ready(InHook) noexcept;
bool has_devices() noexcept;

// Whether there is such an entry in `devices`.
inline bool is_known_device(std::uint32_t entry) noexcept {
  return entry != 0 && entry < session::g_session.devices.size();
}

void reset_devices_after_fork(InHook) noexcept;

// The evidence for a failure on the device.
session::DeviceEvidence device_evidence(std::uint32_t device, std::uint64_t now_ns) noexcept;

// Written with a point of the time line. `entry`: in device_points; 0 adds one, and returns its
// number there.
void write_device_point(InHook, std::uint64_t time_ns, std::uint32_t& entry) noexcept;

}  // namespace oomrec::recorder

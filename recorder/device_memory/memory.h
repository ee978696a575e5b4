// Events of GPU memory: allocations, frees, references. The shim's wrappers of drivers call these.
//
// The promises of recorder.h hold. Every event is recorded, so totals, holders and figures of
// devices are exact. Physical memory counts once: as a block, an array, a handle, or what pools
// hold. Address space, mappings of a handle and imported memory have a space of their own
// (`cuda_va`), host memory another
// (`cuda_host`).
#pragma once

#include <cstdint>

#include "common/session/functions.h"
#include "recorder/devices/registry.h"
#include "recorder/state/request.h"

namespace oomrec::recorder {

// Memory that a call gave the program.
struct DeviceMemory {
  Api api;
  DeviceName name;
  DeviceKind kind;
  std::uint64_t bytes;
  std::uint32_t device = 0;   // entry; 0: unknown
  std::uint64_t context = 0;  // that it ends with; 0: with the process
  std::uint64_t owner = 0;    // session/device_layout.h
};

// Whether there are limits of devices, or rules of --fail. Without them no request needs to be
// checked.
bool has_device_limit_or_rules() noexcept;

// False: the request must fail, because it would exceed the device's limit, or because of a rule of
// --fail, which is then in request.rule. Called before the real function. `kind`: the kind of
// memory requested.
bool admits_on_device(InHook, Request&, DeviceKind) noexcept;
// The limit alone: checked again after the device's pools have been polled.
bool is_within_device_limit(InHook, const Request&, DeviceKind) noexcept;

void on_device_allocate(InHook, const DeviceMemory&) noexcept;

// Called *before* the real free; the result restores the block when that fails. A handle loses one
// reference. A free counts for the device that allocated.
struct DeviceReleased {
  live::DeviceBlock block;  // name.key 0: no entry has that name
  bool gone = false;        // the entry was removed, not only a reference
};
DeviceReleased on_device_free(InHook, Api, const DeviceName&) noexcept;
void restore_on_device(InHook, const DeviceReleased&) noexcept;

// Adds a reference to a handle. False: the handle is unknown.
bool on_device_retain(InHook, const DeviceName& handle) noexcept;

// on_device_free() of an entry that ends with something else.
DeviceReleased remove_entry(InHook, Api, const DeviceName&) noexcept;

}  // namespace oomrec::recorder

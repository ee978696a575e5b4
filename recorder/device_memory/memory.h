// Memory of GPUs: who was given what, and what is given back. The shim's wrappers of drivers call
// these.
//
// The promises of recorder.h hold. Every event is recorded; totals, holders and figures of devices
// are exact. Memory is physical memory once: a block, an array, a handle, what pools hold. Address
// space, mappings of a handle and another's memory are in a space of their own (`cuda_va`), host
// memory in another (`cuda_host`).
#pragma once

#include <cstdint>

#include "common/session/vocabulary.h"
#include "recorder/devices/registry.h"
#include "recorder/state/request.h"

namespace oomrec::recorder {

// What a call gave the program.
struct DeviceMemory {
  Api api;
  DeviceName name;
  DeviceKind kind;
  std::uint64_t bytes;
  std::uint32_t device = 0;   // entry; 0: not known whose
  std::uint64_t context = 0;  // that it ends with; 0: with the process
  std::uint64_t owner = 0;    // session/devices.h
};

// Whether there are limits of devices, or rules of --fail: else nothing needs to be asked first.
bool has_device_limit_or_rules() noexcept;

// False: the request would pass the device's limit, or a rule of --fail speaks of it: then
// request.rule says which. Called before the real function. `kind`: of what it would give.
bool admits_on_device(InHook, Request&, DeviceKind) noexcept;
// The former alone: asked again when what the device's pools hold has been looked at.
bool is_within_device_limit(InHook, const Request&, DeviceKind) noexcept;

void on_device_allocate(InHook, const DeviceMemory&) noexcept;

// Called *before* the real release; the result restores what a failed one did not release. Of a
// handle, one reference less. Frees count against the device that allocated.
struct DeviceReleased {
  live::DeviceBlock block;  // name.key 0: nothing was known by that name
  bool gone = false;        // and not only a reference less
};
DeviceReleased on_device_free(InHook, Api, const DeviceName&) noexcept;
void restore_on_device(InHook, const DeviceReleased&) noexcept;

// One more reference of the program to a handle. False: it is not known.
bool on_device_retain(InHook, const DeviceName& handle) noexcept;

// on_device_free() of an entry, without a call of its own.
DeviceReleased remove_entry(InHook, Api, const DeviceName&) noexcept;

}  // namespace oomrec::recorder

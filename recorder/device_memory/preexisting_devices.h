// What a program's devices held for it when `oomrec attach` came: one holder for each device, with
// the bytes that NVML told the command. They include the program's context on the device.
//
// Blocks that are freed later and are not on record were part of it; the driver is asked for their
// size before. Handles (cuMemCreate) and blocks of pools have none that it would tell: they stay.
#pragma once

#include <cstdint>
#include <span>

#include "common/session/attach_pages.h"
#include "common/system/hook_scope.h"

namespace oomrec::recorder {

// At most GpuBeforeAttach::kMostDevices.
void set_preexisting_devices(InHook,
                             std::span<const session::GpuBeforeAttach::Device> devices) noexcept;

// The recording has ended, or the process is a fork's child, whose devices are not its parent's.
void forget_preexisting_devices() noexcept;

// Once the program uses this device (entry), which the recorder then knows by its UUID.
void add_preexisting_device(InHook, std::uint32_t device) noexcept;

// Whether a block that is not on record may be from before, on any device.
bool has_preexisting_devices() noexcept;

// A block of so many bytes, which is not on record, is being freed on this device.
void release_preexisting_on_device(InHook, std::uint32_t device, std::uint64_t bytes) noexcept;

}  // namespace oomrec::recorder

// What keeps memory alive, and what ends it: mappings of handles, contexts, a device's reset.
#pragma once

#include <cstdint>

#include "recorder/devices/registry.h"

namespace oomrec::recorder {

// Maps a handle's memory, and keeps it alive until it is unmapped.
void on_device_map(InHook, Api, Vendor, std::uint64_t address, std::uint64_t bytes,
                   std::uint64_t handle) noexcept;
// Unmaps all mappings that lie in the range.
void on_device_unmap(InHook, Api, Vendor, std::uint64_t address, std::uint64_t bytes) noexcept;

// Ends all memory of a context.
void on_context_end(InHook, Api, Vendor, std::uint64_t context) noexcept;
// The same for a device's primary context, which owns its pools, too. Either may be 0: unknown.
void on_device_reset(InHook, Api, Vendor, std::uint64_t context, std::uint32_t device) noexcept;

}  // namespace oomrec::recorder

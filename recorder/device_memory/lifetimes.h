// What keeps memory, and what takes it along: mappings of handles, contexts, a device's reset.
#pragma once

#include <cstdint>

#include "recorder/devices/registry.h"

namespace oomrec::recorder {

// A handle's memory at an address: keeps the handle's memory until it is unmapped.
void on_device_map(InHook, Api, Vendor, std::uint64_t address, std::uint64_t bytes,
                   std::uint64_t handle) noexcept;
// All mappings from `address` on that lie in these `bytes`.
void on_device_unmap(InHook, Api, Vendor, std::uint64_t address, std::uint64_t bytes) noexcept;

// All that ends with a context.
void on_context_end(InHook, Api, Vendor, std::uint64_t context) noexcept;
// With a device's primary context, which has its pools, too. Either may be 0: not known.
void on_device_reset(InHook, Api, Vendor, std::uint64_t context, std::uint32_t device) noexcept;

}  // namespace oomrec::recorder

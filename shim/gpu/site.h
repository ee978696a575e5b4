// The device and context of a call, and the driver's figures about them.
#pragma once

#include "recorder/device_memory/polling.h"
#include "shim/gpu/queries.h"

namespace oomrec::shim::gpu {

// A HIP device also stands for its context.
constexpr std::uint64_t context_of_ordinal(std::int32_t ordinal) noexcept {
  return ordinal < 0 ? 0 : static_cast<std::uint64_t>(ordinal) + 1;
}

// The device of a context, if it was seen while the context was current; -1: unknown.
std::int32_t ordinal_of_context(std::uint64_t context) noexcept;
void store_context(const Site&) noexcept;

// A device's primary context; 0: unknown.
std::uint64_t primary_context(session::Vendor, std::int32_t ordinal) noexcept;
void store_primary_context(std::int32_t ordinal, std::uint64_t context) noexcept;

// The device's entry in the session. Queries the driver at the first use of the device.
std::uint32_t entry_of(session::Vendor, std::int32_t ordinal) noexcept;

Site current_site(session::Vendor) noexcept;
Site site_of_stream(session::Vendor, void* stream) noexcept;

// Whether it is time to query the driver for the device's figures.
bool is_poll_due(std::uint32_t device, recorder::PollAfter) noexcept;
bool is_pool_poll_due(std::uint32_t device) noexcept;

// Queries the free and total bytes of `site`, if it is the thread's current one.
void poll_memory(session::Vendor, const Site&, std::uint32_t device) noexcept;

// Queries the size of a pool; nullptr: the device's default pool.
void poll_pool(session::Vendor, std::uint32_t device, std::int32_t ordinal, void* pool) noexcept;
// The same for the default pool and all known pools of the device.
void poll_pools(session::Vendor, std::uint32_t device, std::int32_t ordinal) noexcept;

}  // namespace oomrec::shim::gpu

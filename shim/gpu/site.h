// Where a call went: its device and context, and what the driver says of them.
#pragma once

#include "recorder/device_memory/polling.h"
#include "shim/gpu/queries.h"

namespace oomrec::shim::gpu {

// A HIP device stands for its context.
constexpr std::uint64_t context_of_ordinal(std::int32_t ordinal) noexcept {
  return ordinal < 0 ? 0 : static_cast<std::uint64_t>(ordinal) + 1;
}

// Contexts whose device was seen while they were current; -1: never.
std::int32_t ordinal_of_context(std::uint64_t context) noexcept;
void note_context(const Site&) noexcept;

// The context that a device's primary one is; 0: not known.
std::uint64_t primary_context(session::Vendor, std::int32_t ordinal) noexcept;
void note_primary_context(std::int32_t ordinal, std::uint64_t context) noexcept;

// The device's entry in the session. Asks the driver when it sees the device for the first time.
std::uint32_t entry_of(session::Vendor, std::int32_t ordinal) noexcept;

Site current_site(session::Vendor) noexcept;
Site site_of_stream(session::Vendor, void* stream) noexcept;

// Whether it is time to ask the driver for figures of the device.
bool is_poll_due(std::uint32_t device, recorder::PollAfter) noexcept;
bool is_pool_poll_due(std::uint32_t device) noexcept;

// Asks for the free and total bytes of `site`, if it is the thread's current one.
void poll_memory(session::Vendor, const Site&, std::uint32_t device) noexcept;

// Asks what a pool holds; nullptr: the device's default pool.
void poll_pool(session::Vendor, std::uint32_t device, std::int32_t ordinal, void* pool) noexcept;
// The same of that one and of all others that are known to be the device's.
void poll_pools(session::Vendor, std::uint32_t device, std::int32_t ordinal) noexcept;

}  // namespace oomrec::shim::gpu

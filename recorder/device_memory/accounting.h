// Counts device memory: the device's figures, the thread's counters, and a holder.
#pragma once

#include "recorder/devices/registry.h"
#include "recorder/state/thread_state.h"

namespace oomrec::recorder {

Space space_of(Vendor, DeviceKind) noexcept;

// A call that changes a GPU's memory: where it came from.
struct DeviceCaller {
  ThreadState* thread = nullptr;
  std::uint32_t node = 0;
};
// Also begins what a fork's child still waits for.
DeviceCaller device_caller(InHook) noexcept;

// The device's figures, the thread's counters and a holder, by a block that comes, or goes.
void count_in(InHook, ThreadState*, const live::DeviceBlock&) noexcept;
void count_out(InHook, ThreadState*, const live::DeviceBlock&) noexcept;
// Takes count_out() back.
void count_back_in(InHook, ThreadState*, const live::DeviceBlock&) noexcept;
// Calls of a driver are rare: afterwards the totals of its spaces are told at once. Never under the
// lock of the blocks: it may tick, and a bundle take its time.
void publish_device(InHook, ThreadState*, Vendor) noexcept;

inline bool has_memory(const live::DeviceBlock& block) noexcept {
  return block.kind != DeviceKind::none;
}

void tally_call(Api, std::uint64_t bytes) noexcept;
void append_release_event(ThreadState*, Api, const live::DeviceBlock&) noexcept;

// What a device's pools hold is `bytes` more.
void add_to_pools(std::uint32_t device, std::uint64_t bytes) noexcept;

}  // namespace oomrec::recorder

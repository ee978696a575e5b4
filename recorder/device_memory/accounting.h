// Counts device memory: the device's figures, the thread's counters, and a holder.
#pragma once

#include "recorder/devices/registry.h"
#include "recorder/state/node_scope.h"
#include "recorder/state/thread_state.h"

namespace oomrec::recorder {

// What is to become of a block that for_each() has shown.
using Then = live::DeviceBlocks::Then;

Space space_of(Vendor, DeviceKind) noexcept;

// Where a call that changes a GPU's memory came from.
struct DeviceCaller {
  ThreadState* thread = nullptr;
  std::uint32_t node = 0;
};
// Captures the stack.
DeviceCaller device_caller(InHook, NodeScope&) noexcept;

// Adds a block to the device's figures, the thread's counters and its holder; takes it off them.
void count_in(InHook, ThreadState*, const live::DeviceBlock&) noexcept;
void count_out(InHook, ThreadState*, const live::DeviceBlock&) noexcept;
// The block was a part of memory from before `oomrec attach`, which goes on being one block.
void count_part_out(InHook, ThreadState*, const live::DeviceBlock&) noexcept;
// Takes count_out() back.
void count_back_in(InHook, ThreadState*, const live::DeviceBlock&) noexcept;
// Publishes the totals of the driver's spaces: its calls are rare, so after each. Never under the
// lock of the blocks, as it may run the tick, which may write a bundle.
void publish_device(InHook, ThreadState*, Vendor) noexcept;

inline bool has_memory(const live::DeviceBlock& block) noexcept {
  return block.kind != DeviceKind::none;
}

void tally_call(Api, std::uint64_t bytes) noexcept;
void append_release_event(ThreadState*, Api, const live::DeviceBlock&) noexcept;

// A device's pools have reserved `bytes` more.
void add_to_pools(std::uint32_t device, std::uint64_t bytes) noexcept;

}  // namespace oomrec::recorder

// Exact counters, and how they reach the totals. A block counts its usable bytes at both of its
// ends.
//
// A thread counts in its own lane, unlocked. About every 64 KiB it publishes its share in the
// space's total, which limits are checked against and peaks are taken from. A new peak that is a
// hundredth above the last step raises the step's number; holders then save their figures
// (holder_table.h). So change a holder *before* the counters, else the picture of the peak lacks
// the block that made it.
#pragma once

#include <bit>
#include <cstdint>

#include "common/system/atomics.h"
#include "recorder/state/hand_over.h"
#include "recorder/state/state.h"
#include "recorder/state/thread_state.h"

namespace oomrec::recorder {

// A change of one space's counters. Constants that are zero cost nothing: count() is inlined.
struct Delta {
  std::uint64_t allocated_bytes = 0;  // as requested
  std::uint64_t allocated_count = 0;
  std::uint64_t freed_count = 0;
  std::uint64_t usable_allocated_bytes = 0;
  std::uint64_t usable_freed_bytes = 0;

  std::int64_t live_bytes() const noexcept {
    return static_cast<std::int64_t>(usable_allocated_bytes - usable_freed_bytes);
  }
};

template <class Add>
inline void add_delta(session::SpaceCounters& counters, const Delta& delta, Add add) noexcept {
  if (delta.allocated_bytes != 0) add(counters.allocated_bytes, delta.allocated_bytes);
  if (delta.allocated_count != 0) add(counters.allocated_count, delta.allocated_count);
  if (delta.freed_count != 0) add(counters.freed_count, delta.freed_count);
  if (delta.usable_allocated_bytes != 0)
    add(counters.usable_allocated_bytes, delta.usable_allocated_bytes);
  if (delta.usable_freed_bytes != 0) add(counters.usable_freed_bytes, delta.usable_freed_bytes);
}

// Adds the thread's share to the totals. Reads the clock, and so may run the tick.
void publish(InHook, ThreadState&, Space) noexcept;

// `live` more bytes are in a space's total: raises peak and step.
void raise_peak(session::SpaceTotals&, std::int64_t live) noexcept;

// publish() without reading the clock or checking the limits. Returns the share.
std::int64_t publish_quietly(ThreadState&, Space) noexcept;

// Counts without a lane: slower, shared. In registers: a Delta in memory would be read back in
// larger words than it was written, for which the processor waits.
void count_unlaned(Space, std::uint64_t allocated_bytes, std::uint64_t allocated_count,
                   std::uint64_t freed_count, std::uint64_t usable_allocated_bytes,
                   std::uint64_t usable_freed_bytes) noexcept;
inline void count_unlaned(Space space, const Delta& delta) noexcept {
  count_unlaned(space, delta.allocated_bytes, delta.allocated_count, delta.freed_count,
                delta.usable_allocated_bytes, delta.usable_freed_bytes);
}

// Adds what was counted without a lane to this one.
void fold_unlaned(InHook, ThreadState&) noexcept;

inline void count_quietly(ThreadState& thread, Space space, const Delta& delta) noexcept {
  const auto at = static_cast<std::size_t>(space);
  add_delta(thread.lane->spaces[at], delta,
            [](auto& word, std::uint64_t by) noexcept { add_own(word, by); });
  add_own(thread.unpublished[at], delta.live_bytes());
}

// Whether the thread's share is to be published.
inline bool is_share_large(const ThreadState& thread, Space space) noexcept {
  const std::int64_t share =
      thread.unpublished[static_cast<std::size_t>(space)].load(std::memory_order_relaxed);
  constexpr auto kShare = static_cast<std::int64_t>(kPublishBytes);
  return share >= kShare || share <= -kShare;
}
inline void maybe_publish(InHook hook, ThreadState& thread, Space space) noexcept {
  if (is_share_large(thread, space)) [[unlikely]]
    publish(hook, thread, space);
  leave(&thread);
}

inline void count(InHook hook, ThreadState* thread, Space space, const Delta& delta) noexcept {
  if (thread == nullptr) [[unlikely]]
    return count_unlaned(space, delta);
  count_quietly(*thread, space, delta);
  maybe_publish(hook, *thread, space);
}

// Tallies of recorded events, by their weight: all of them by API, allocations also by size.
inline void add_to_tally(session::Tally& entry, std::uint64_t bytes,
                         std::uint32_t weight) noexcept {
  add_own(entry.count, std::uint64_t{weight});
  add_own(entry.bytes, bytes * weight);
}
inline void tally_api(ThreadState& thread, Api api, std::uint64_t bytes,
                      std::uint32_t weight) noexcept {
  add_to_tally(thread.lane->apis[static_cast<std::size_t>(api)], bytes, weight);
}
inline void tally_allocation(ThreadState& thread, Api api, std::uint64_t bytes,
                             std::uint32_t weight) noexcept {
  tally_api(thread, api, bytes, weight);
  const auto bucket = static_cast<std::uint32_t>(std::bit_width(bytes));
  add_to_tally(
      thread.lane->sizes[bucket < session::kSizeBuckets ? bucket : session::kSizeBuckets - 1],
      bytes, weight);
}

// Heap and counted mappings, as the soft limit counts.
std::int64_t live_bytes(const ThreadState*) noexcept;

}  // namespace oomrec::recorder

// Which holders may be among the largest, so that a checkpoint need not look at all of them.
//
// A holder that grows past the threshold becomes a candidate: one load and a compare, on lines that
// are at hand. When there are too many, the smaller ones are pushed out and the threshold becomes
// what the smallest of the others holds. Whoever finds somebody else at it goes on: a holder that
// is overlooked so, or that grew large again by the shrinking of others, is found by the look that
// each tick takes at the next few in turn.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>

#include "common/session/entries.h"
#include "common/system/hook_scope.h"
#include "common/system/spin_lock.h"

namespace oomrec::live {

struct LargeHolder {
  std::int64_t live_bytes;
  std::uint32_t holder;
};

class Candidates {
 public:
  static constexpr std::uint32_t kMost = 512, kKept = 384;
  static constexpr std::uint32_t kLooks = 512;  // holders that a tick looks at
  static_assert(kKept >= session::kCheckpointRows);

  // Holder `number` has just been told that it holds more.
  void note(session::Holder& holder, std::uint32_t number) noexcept {
    const auto live = static_cast<std::int64_t>(holder.live_bytes.load(std::memory_order_relaxed));
    if (live > threshold_.load(std::memory_order_relaxed) && !is_candidate(holder)) [[unlikely]]
      add(holder, number, live);
  }

  // At each tick.
  void look_further(InHook) noexcept;

  // The largest holders, largest first: as many as `out` has room for, which is made as long as
  // there are. False where another thread is at it.
  bool largest(InHook, std::span<LargeHolder>& out) noexcept;

  // The session is gone.
  void forget(InHook) noexcept;

 private:
  static bool is_candidate(session::Holder& holder) noexcept {
    return (std::atomic_ref(holder.flags).load(std::memory_order_relaxed) &
            session::kHolderCandidate) != 0;
  }
  [[gnu::noinline, gnu::cold]] void add(session::Holder&, std::uint32_t number,
                                        std::int64_t live) noexcept;
  void insert(session::Holder&, std::uint32_t number, std::int64_t live) noexcept;
  void weigh() noexcept;
  void push_out() noexcept;

  // Who holds no more than this is no candidate. Read at each event that tells a holder: on a line
  // of its own, because the next ones are written.
  alignas(64) std::atomic<std::int64_t> threshold_{0};
  alignas(64) system::SpinLock lock_;
  std::uint32_t count_ = 0;
  std::uint32_t looked_at_ = 0;         // holder that the last look ended with
  LargeHolder candidates_[kMost] = {};  // bytes as they were when last weighed
};

}  // namespace oomrec::live

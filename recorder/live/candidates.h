// Candidates for the largest holders, so that a checkpoint need not scan all of them.
//
// A holder that grows past the threshold becomes a candidate: one load and a compare, on cached
// lines. When there are too many, the smaller ones are evicted and the threshold becomes the size
// of the smallest one left. A thread that finds the list locked skips it. A holder missed this way,
// or large again because others shrank, is found by the ticks, each of which scans the next few
// holders.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>

#include "common/session/entries.h"
#include "common/system/hook_scope.h"
#include "common/system/mutex.h"

namespace oomrec::live {

struct LargeHolder {
  std::int64_t live_bytes;
  std::uint32_t holder;
};

class Candidates {
 public:
  static constexpr std::uint32_t kMost = 512, kKept = 384;
  static constexpr std::uint32_t kScanned = 512;  // holders that a tick scans
  static_assert(kKept >= session::kCheckpointRows);

  // Call it when holder `number` has grown.
  void on_growth(session::Holder& holder, std::uint32_t number) noexcept {
    const auto live = static_cast<std::int64_t>(holder.live_bytes.load(std::memory_order_relaxed));
    if (live > threshold_.load(std::memory_order_relaxed) && !is_candidate(holder)) [[unlikely]]
      add(holder, number, live);
  }

  // The same of a brief one, which then becomes full.
  void on_brief_growth(InHook hook, std::uint32_t number, std::int64_t live) noexcept {
    if (live > threshold_.load(std::memory_order_relaxed)) [[unlikely]]
      add_brief(hook, number, live);
  }

  // Scans the next few holders. Called by each tick.
  void scan_next(InHook) noexcept;

  // Fills `out` with the largest holders, largest first, and shortens it if there are fewer. False:
  // another thread has locked the list.
  bool largest(InHook, std::span<LargeHolder>& out) noexcept;

  // Holders without live blocks are candidates no longer, so that they may be forgotten.
  void drop_empty() noexcept;

  // After a fork: the session is the parent's.
  void reset(InHook) noexcept;

 private:
  static bool is_candidate(session::Holder& holder) noexcept {
    return (std::atomic_ref(holder.flags).load(std::memory_order_relaxed) &
            session::kHolderCandidate) != 0;
  }
  [[gnu::noinline, gnu::cold]] void add(session::Holder&, std::uint32_t number,
                                        std::int64_t live) noexcept;
  [[gnu::noinline, gnu::cold]] void add_brief(InHook, std::uint32_t number,
                                              std::int64_t live) noexcept;
  void insert(session::Holder&, std::uint32_t number, std::int64_t live) noexcept;
  void update_sizes() noexcept;
  void evict() noexcept;
  void drop_from(LargeHolder* kept) noexcept;
  LargeHolder* partition_empty() noexcept;

  // Holders up to this size are not candidates. Read whenever a holder grows: on its own cache
  // line, because the fields below are written.
  alignas(64) std::atomic<std::int64_t> threshold_{0};
  alignas(64) system::Mutex lock_;
  std::uint32_t count_ = 0;
  std::uint32_t last_scanned_ = 0;      // the holder where the last scan ended
  LargeHolder candidates_[kMost] = {};  // bytes as of the last update_sizes()
};

}  // namespace oomrec::live

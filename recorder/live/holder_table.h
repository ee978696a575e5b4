// Holders: (stack, space) → what it holds, in the session.
//
// Entries are never removed. Lookup takes no lock; a holder that is new does, a few hundred
// thousand times in a long life. All figures count bytes asked for (space map: bytes mapped).
#pragma once

#include <cstdint>
#include <iterator>

#include "common/session/layout.h"
#include "common/session/vocabulary.h"
#include "common/system/hook_scope.h"
#include "common/system/spin_lock.h"
#include "recorder/live/candidates.h"
#include "recorder/live/index.h"

namespace oomrec::live {

class HolderTable {
 public:
  // The holder's entry, with `flags` added to those it has; 0 when there is no room.
  std::uint32_t find_or_add(InHook, std::uint32_t node, Space, Api, std::uint8_t flags) noexcept;

  // `count` blocks of together `bytes` are now held: live and ever allocated.
  void grow(InHook, std::uint32_t holder, std::uint64_t bytes, std::uint64_t count) noexcept;
  // They are held again (a release that did not happen), or one became several: live only.
  void restore(InHook, std::uint32_t holder, std::uint64_t bytes, std::uint64_t count) noexcept;
  // They are held no longer.
  void shrink(InHook, std::uint32_t holder, std::uint64_t bytes, std::uint64_t count) noexcept;
  // The same, of what was only estimated: never below zero.
  void shrink_at_most(InHook, std::uint32_t holder, std::uint64_t bytes,
                      std::uint64_t count) noexcept;

  // So many of the blocks that it holds no longer were temporary.
  void add_temporary(InHook, std::uint32_t holder, std::uint32_t count) noexcept;

  // What a thread summed up for the heap's holder in `sum` becomes the holder's, and the sum is
  // zero; likewise its count of temporary blocks. `epoch` is the heap's peak_epoch during which it
  // was summed: if a peak step has come since, it belongs to that step's picture.
  void settle(InHook, session::HolderSum& sum, std::atomic<std::uint32_t>& temporary,
              std::uint32_t epoch) noexcept;

  // The largest ones.
  Candidates& candidates() noexcept { return candidates_; }

  // The session is gone.
  void forget(InHook) noexcept;

 private:
  // A peak step of the space only raises its epoch; who changes a holder next saves, first, what it
  // held at that step. Blocks counted meanwhile by a thread that has passed this check are lost to
  // the peak's picture: at most one event a thread.
  session::Holder& changing(std::uint32_t holder) noexcept;
  void save_peak(session::Holder&) noexcept;
  system::SpinLock& peak_lock_of(const session::Holder& holder) noexcept {
    return peak_locks_[holder.node % std::size(peak_locks_)];
  }

  system::SpinLock lock_;
  Index<Outgrown::keep> index_;
  system::SpinLock peak_locks_[16];
  Candidates candidates_;
};

}  // namespace oomrec::live

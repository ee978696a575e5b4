// Holders: (stack, space) → its live blocks and totals, in the session.
//
// Lookup takes no lock; adding and removing a holder does. Figures of the heap count what its
// blocks take up, those of space map mapped bytes.
#pragma once

#include <cstdint>
#include <iterator>

#include "common/session/functions.h"
#include "common/session/layout.h"
#include "common/system/hook_scope.h"
#include "common/system/mutex.h"
#include "recorder/live/candidates.h"
#include "recorder/live/full_holders.h"
#include "recorder/live/node_map.h"
#include "recorder/session/free_numbers.h"
#include "recorder/session/index.h"

namespace oomrec::live {

class HolderTable {
 public:
  // The holder's number; 0: a table is full. It becomes a full one (full_holders.h), with `flags`
  // added, as the functions for a `holder` below need it.
  std::uint32_t find_or_add(InHook, std::uint32_t node, Space, Api, std::uint8_t flags) noexcept;
  // The same for flush() only: a new one is brief.
  std::uint32_t find_or_add_brief(InHook, std::uint32_t node, Space, Api) noexcept;

  // `count` blocks of `bytes` in total were allocated: counts as live and as ever allocated.
  void grow(InHook, std::uint32_t holder, std::uint64_t bytes, std::uint64_t count) noexcept;
  // They are live again (a release that did not happen), or one became several: live only.
  void restore(InHook, std::uint32_t holder, std::uint64_t bytes, std::uint64_t count) noexcept;
  // They were released.
  void shrink(InHook, std::uint32_t holder, std::uint64_t bytes, std::uint64_t count) noexcept;
  // The same for estimates: never below zero.
  void shrink_at_most(InHook, std::uint32_t holder, std::uint64_t bytes,
                      std::uint64_t count) noexcept;

  // So many of its released blocks were temporary.
  void add_temporary(InHook, std::uint32_t holder, std::uint32_t count) noexcept;

  // Adds a thread's `sum` to its heap holder and zeroes the sum; likewise its count of temporary
  // blocks. `epoch`: the heap's peak_epoch while it was summed; if a peak step has happened since,
  // it also counts for that step. False: the holder would have to become full, and the table of
  // those is; nothing was done.
  bool flush(InHook, session::HolderSum& sum, std::atomic<std::uint32_t>& temporary,
             std::uint32_t epoch) noexcept;
  // A change of a heap holder that no thread has summed up. False: as of flush().
  bool add(InHook, std::uint32_t holder, const session::HolderChange&) noexcept;

  // What the holders of a node are without.
  struct Forgotten {
    Space space;
    Api api;
    std::uint8_t flags;
    std::uint64_t total_bytes, total_count;
    std::uint32_t temporary_count;
  };
  // Of a node: whether it has holders, and one of them has live memory now, had some at the last
  // peak, or is a candidate for a checkpoint.
  enum class Has : std::uint8_t { none, empty, needed };
  Has of_node(std::uint32_t node) const noexcept;
  bool has_any(std::uint32_t node) const noexcept;
  std::uint32_t free() const noexcept { return free_.count(); }  // numbers that may be used again
  // Removes the holders of a retired node: forget(const Forgotten&) for each.
  template <class Forget>
  void remove(InHook hook, std::uint32_t node, bool has_others, Forget&& forget) noexcept {
    Forgotten figures;
    if (take_out(hook, node, Space::heap, figures)) forget(figures);
    for (std::size_t space = 1; has_others && space < kSpaceCount; ++space)
      if (take_out(hook, node, static_cast<Space>(space), figures)) forget(figures);
  }

  // Adds what forgotten holders had allocated in their time to one that stands for them.
  void add_totals(InHook, std::uint32_t holder, const Forgotten&) noexcept;

  // The largest ones.
  Candidates& candidates() noexcept { return candidates_; }

  // After a fork: the session is the parent's.
  void reset(InHook) noexcept;

 private:
  // A peak step of the space only raises its epoch; the next change of a holder first saves its
  // figures as of that step. Events of threads that have just passed this check are missing from
  // the peak's figures: at most one event a thread.
  session::Holder& changing(std::uint32_t holder) noexcept {
    session::Holder& full = full_holder(holder);
    prepare_change(full);
    return full;
  }
  void prepare_change(session::Holder&) noexcept;
  std::uint32_t find(std::uint32_t node, Space) const noexcept;
  bool take_out(InHook, std::uint32_t node, Space, Forgotten&) noexcept;
  bool add(InHook, std::uint32_t holder, const session::HolderChange&,
           std::uint32_t epoch) noexcept;
  bool flush_brief(InHook, std::uint32_t holder, const session::HolderChange&,
                   std::uint32_t epoch) noexcept;
  void flush_full(session::Holder&, std::uint32_t number, const session::HolderChange&,
                  std::uint32_t epoch) noexcept;
  static void add_temporary(session::Holder&, std::uint64_t count) noexcept;
  void save_peak(session::Holder&) noexcept;
  system::Mutex& peak_lock_of(const session::Holder& holder) noexcept {
    return peak_locks_[holder.node % std::size(peak_locks_)];
  }

  system::Mutex lock_;
  session::FreeNumbers free_;                      // holders that may be used again
  NodeMap of_heap_;                                // by node
  session::Index<session::Outgrown::keep> index_;  // of all others, by node and space
  system::Mutex peak_locks_[16];
  Candidates candidates_;
};

}  // namespace oomrec::live

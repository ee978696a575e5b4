// Threads that use nodes, and rounds of forgetting: who waits for whom.
//
// A thread announces the era in which it begins to use nodes. A round raises the era, and then
// reads what each thread has announced. Each of both first stores and then loads what the other one
// stores, all in one order (seq_cst): so the round sees the thread, or the thread sees the new era.
#pragma once

#include <atomic>
#include <cstdint>

#include "recorder/session/node_states.h"

namespace oomrec::stack {

// While the thread uses nodes: the era in which it began to; kStalled: others no longer wait for
// it. 0: it uses none.
using AnnouncedEra = std::atomic<std::uint32_t>;
inline constexpr std::uint32_t kStalled = 1u << 31;

// From begin() to end(), what its thread finds in the trie stays as it is: nodes, and holders of
// these. An outer one of the same thread covers an inner one.
class UsesNodes {
 public:
  void begin(AnnouncedEra& thread) noexcept {
    if (thread_ != nullptr || thread.load(std::memory_order_relaxed) != 0) return;
    thread_ = &thread;
    announce(thread);
  }
  // False: it has not begun, or is within another one.
  bool end() noexcept {
    if (thread_ == nullptr) return false;
    thread_->store(0, std::memory_order_release);
    thread_ = nullptr;
    return true;
  }

  static void announce(AnnouncedEra& thread) noexcept {
    std::uint32_t era = session::g_era.load(std::memory_order_relaxed);
    for (std::uint32_t announced = 0; announced != era; era = session::g_era.load()) {
      announced = era;
      thread.exchange(announced);
    }
  }

 private:
  AnnouncedEra* thread_ = nullptr;
};

// --- The other side: one thread at a time --------------------------------------------------------

// Returns the new era. What was stored before, threads of this era see.
inline std::uint32_t raise_era() noexcept {
  const std::uint32_t era = session::g_era.fetch_add(1, std::memory_order_release) + 1;
  session::g_era_salt.store(session::salt_of(era), std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return era;
}

// What a thread has announced, seen from `era`, which is now. If it is none or this era, all that
// it did in earlier ones is seen.
enum class Use : std::uint8_t { none_or_now, earlier, stalled };
inline Use use_of(const AnnouncedEra& thread, std::uint32_t era) noexcept {
  const std::uint32_t word = thread.load(std::memory_order_acquire);
  if (word == 0 || (word & ~kStalled) == era) return Use::none_or_now;
  return (word & kStalled) != 0 ? Use::stalled : Use::earlier;
}

// No longer waits for a thread of an earlier era than `era`. False: it has gone on.
inline bool give_up(AnnouncedEra& thread, std::uint32_t era) noexcept {
  std::uint32_t word = thread.load(std::memory_order_relaxed);
  return word != 0 && word != era && (word & kStalled) == 0 &&
         thread.compare_exchange_strong(word, word | kStalled, std::memory_order_acq_rel);
}
// Whether others have given up this thread: its nodes may be other stacks'.
inline bool is_given_up(const AnnouncedEra& thread) noexcept {
  return (thread.load(std::memory_order_acquire) & kStalled) != 0;
}

}  // namespace oomrec::stack

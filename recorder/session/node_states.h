// What the recorder knows about each node beside its entry in the session: whether it is in use,
// how many refer to it, and in which era a thread last found it.
//
// A node is reused for another stack when nothing needs it any more (docs/forgetting.md). One
// atomic word decides that: a thread that finds a node *claims* it by stamping the word with the
// era, and forgetting retires the node by a compare-and-exchange of the same word, which fails if
// another thread was faster.
#pragma once

#include <atomic>
#include <cstdint>

#include "recorder/session/private_array.h"

namespace oomrec::session {

// Raised when a round of forgetting begins. Threads note it in each event that uses nodes.
inline constinit std::atomic<std::uint32_t> g_era{1};

// Distinguishes what threads cached in one era from all others: nodes of an earlier one may have
// been used again. A bijection of the era.
constexpr std::uint64_t salt_of(std::uint32_t era) noexcept { return era * 0x9e3779b97f4a7c15u; }
inline constinit std::atomic<std::uint64_t> g_era_salt{salt_of(1)};  // of g_era, stored after it

class NodeStates {
 public:
  static constexpr std::uint32_t kMost = 1u << 24;

  // 0–21 references: children, and pins; kManyReferences: so many that they are not counted any
  // more · 22 frozen · 23 has holders of other spaces than the heap · 24–31 stamp; 0: not in use.
  using Word = std::uint32_t;
  static constexpr Word kReferences = (1u << 22) - 1, kManyReferences = kReferences;
  static constexpr Word kFrozen = 1u << 22, kHasOthers = 1u << 23;
  static constexpr unsigned kStampShift = 24;

  static Word stamp_of(std::uint32_t era) noexcept { return (1 + era % 255) << kStampShift; }
  static Word stamp_in(Word word) noexcept { return word >> kStampShift << kStampShift; }

  // Maps the word of a new node. Under the trie's lock. False: no memory.
  bool prepare(InHook hook, std::uint32_t node) noexcept { return words_.prepare(hook, node); }
  // A new node, claimed, with this number of references. Under the trie's lock.
  void add(std::uint32_t node, Word references) noexcept {
    words_.find(node)->store(stamp_now() | references, std::memory_order_release);
  }

  // 0: not in use.
  Word load(std::uint32_t node) const noexcept {
    const std::atomic<Word>* const word = words_.find(node);
    return word == nullptr ? 0 : word->load(std::memory_order_acquire);
  }

  // Claims the node if its word is still `seen`, by which the caller knows what it is. False: look
  // at it again.
  bool claim(std::uint32_t node, Word seen) noexcept {
    const Word now = stamp_now(), next = stamp_of(g_era.load(std::memory_order_relaxed) + 1);
    if (stamp_in(seen) == now || stamp_in(seen) == next) [[likely]]
      return true;  // it is not retired before the caller's event has ended
    return words_.find(node)->compare_exchange_strong(seen, (seen & ~stamp_in(seen)) | now,
                                                      std::memory_order_acq_rel);
  }

  // Claims a node that something else keeps in use, or that a table of the session refers to.
  void touch(std::uint32_t node) noexcept {
    for (Word seen = load(node); seen != 0 && !claim(node, seen); seen = load(node)) {
    }
  }

  // One more, or one less, refers to a node that is claimed or referred to.
  void refer(std::uint32_t node) noexcept { add_reference(node, 1); }
  void release(std::uint32_t node) noexcept { add_reference(node, ~Word{0}); }

  void set(std::uint32_t node, Word flag) noexcept {
    change(node, [&](Word w) { return w | flag; });
  }
  void clear(std::uint32_t node, Word flag) noexcept {
    change(node, [&](Word w) { return w & ~flag; });
  }

  // Whether nothing refers to it, and no thread has found it in the era `now`.
  static bool is_unused(Word word, std::uint32_t now) noexcept {
    return (word & (kReferences | kFrozen)) == 0 && word != 0 && stamp_in(word) != stamp_of(now);
  }
  // Nor in the one before.
  static bool is_idle(Word word, std::uint32_t now) noexcept {
    return is_unused(word, now) && stamp_in(word) != stamp_of(now - 1);
  }
  // Not in use from now on. False: it has been claimed, or is referred to again.
  bool retire(std::uint32_t node, Word seen) noexcept {
    return words_.find(node)->compare_exchange_strong(seen, 0, std::memory_order_acq_rel);
  }

  void reset(InHook hook) noexcept { words_.reset(hook); }

 private:
  static Word stamp_now() noexcept { return stamp_of(g_era.load(std::memory_order_relaxed)); }

  template <class Change>
  void change(std::uint32_t node, Change change) noexcept {
    std::atomic<Word>* const word = words_.find(node);
    if (word == nullptr) return;
    Word seen = word->load(std::memory_order_relaxed);
    while (seen != 0 &&
           !word->compare_exchange_weak(seen, change(seen), std::memory_order_acq_rel)) {
    }
  }
  void add_reference(std::uint32_t node, Word by) noexcept {
    change(node,
           [&](Word word) { return (word & kReferences) == kManyReferences ? word : word + by; });
  }

  PrivateArray<std::atomic<Word>, kMost> words_;
};

inline constinit NodeStates g_node_states;

}  // namespace oomrec::session

// A stack walk that reuses the outer part of the thread's last walk, as far as that is still valid.
//
// One step depends on the frame's state (pc, sp, and bp where it matters) and on the cells it
// reads: the return address below the caller's sp, the saved bp, and where an over-aligned frame
// keeps the caller's sp. So when a frame's state is in the cache and every cached cell outside it
// is unchanged, the rest of the stack is unchanged, whoever wrote it. Comparing the meeting frame
// alone is not enough: A → X → f and B → X → f leave f in the same state, and a torture test got 6
// to 13 % of its stacks wrong that way.
//
// Compares cells from the inside outwards up to the first that differs, so it reads nothing that
// the full walk would not read. Never reuses steps that took more than a rule (signal frames,
// guesses, libunwind), or frames inside them. Writes nothing to reused frames, and reads only their
// cells.
//
// Besides the last walk, a few hundred recent ones are cached whole, by the frame where they began:
// a program that allocates in turns from a few places needs no walk at all.
#pragma once

#include <atomic>
#include <span>

#include "recorder/stack/unwind.h"

namespace oomrec::stack {

struct NativeStack {
  NativeFrame* frames;  // innermost first; valid until the thread's next walk
  std::uint32_t count;
  std::uint32_t reused;  // how many, the outermost, come from the cache
  bool truncated;
  bool interrupted;  // by a signal: a frame lies below a handler's
};

// The calling thread's stack from `at` outwards: the same result as unwind(), in less time.
NativeStack cached_unwind(InHook, const Registers& at, ThreadStacks&) noexcept;

// The generation of all valid caches.
extern constinit std::atomic<std::uint32_t> g_walk_generation;

inline std::uint64_t state_hash(std::uint64_t pc, std::uint64_t sp) noexcept {
  return (pc + sp * 5) * 0x9e3779b97f4a7c15u;
}
// The hint for this hash.
inline CachedWalks::Number& hint_of(std::span<CachedWalks::Number> hints,
                                    std::uint64_t hash) noexcept {
  return hints[hash >> 32 & (hints.size() - 1)];
}

// A cached walk with the same result as one that begins there now: it began in the same state, and
// all cells that it read are unchanged. nullptr: none. `bp()` reads the register, which is rarely
// needed.
template <class Bp>
[[gnu::always_inline]] inline CachedWalk* find_walk(ThreadStacks& thread, std::uint64_t pc,
                                                    std::uint64_t sp, Bp bp) noexcept {
  // First, so that a thread's first walk does not read a page that it then writes: two page faults.
  if (thread.generation != g_walk_generation.load(std::memory_order_relaxed)) [[unlikely]]
    return nullptr;
  CachedWalks& walks = thread.walks;
  const std::uint64_t hash = state_hash(pc, sp);
  CachedWalks::Number& begun = hint_of(walks.begun, hash);
  CachedWalks::Number* hint = &begun;
  constexpr unsigned kMost = 6;  // to be compared
  for (unsigned tried = 0; tried != kMost; ++tried) {
    CachedWalk* walk = walks.walks + *hint;
    asm("" : "+r"(walk));  // otherwise its address is computed again for each field
    if (walk->pc != pc || walk->sp != sp || (walk->bp_matters && walk->bp != bp())) [[unlikely]]
      break;
    const std::uint64_t change = change_of(walk->cells);
    if (change == kNothing) [[likely]] {
      if (tried != 0) begun = *hint;
      return walk;
    }
    if (change == kOverwritten) [[unlikely]]
      break;
    hint = &hint_of(walks.changed, change + *hint * 0xd6e8feb86659fd93u);
  }
  walks.missed = hint;
  return nullptr;
}

// The same from `at` outwards. nullptr: call cached_unwind().
CachedWalk* find_walk(InHook, const Registers& at, ThreadStacks&) noexcept;

// The cached walk from there with this chain; nullptr: none.
CachedWalk* walk_with_chain(ThreadStacks&, const Registers& at, std::uint64_t chain) noexcept;

// A walk led to a stack that was known: larger caches would have spared it. If that happens often,
// the thread gets them.
void count_needless_walk(ThreadStacks&) noexcept;
// Only for a thread whose caches are small, and have been used.
void enlarge_caches(ThreadStacks&) noexcept;

void clear_caches(ThreadStacks&) noexcept;  // before another thread uses it
void invalidate_caches() noexcept;  // every thread's: rules or ids of the session have changed

}  // namespace oomrec::stack

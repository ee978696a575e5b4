// The build option self_check: compares every stack that reuses a part of the thread's last one
// with a full walk, and every 64th with libunwind.
//
// OOMREC_SELF_CHECK names a zeroed file of the size of SelfCheckCounts, to which all processes add.
// A difference is counted there and printed; without such a file it aborts the program.
#pragma once

#include <atomic>

#include "recorder/stack/walk_cache.h"

namespace oomrec::stack {

#ifdef OOMREC_SELF_CHECK
inline constexpr bool kSelfCheck = true;
#else
inline constexpr bool kSelfCheck = false;
#endif

// tests/self_check.py reads them in this order.
struct SelfCheckCounts {
  std::atomic<std::uint64_t> stacks;
  std::atomic<std::uint64_t> frames;
  std::atomic<std::uint64_t> reusing;  // stacks that reused a part
  std::atomic<std::uint64_t> reused_frames;
  std::atomic<std::uint64_t> oracle_stacks;  // compared with libunwind
  std::atomic<std::uint64_t> oracle_frames;
  std::atomic<std::uint64_t> oracle_ends;  // libunwind could not follow: a guess, a small stack
  std::atomic<std::uint64_t> python_frames;
  std::atomic<std::uint64_t> python_reused;
  std::atomic<std::uint64_t> cached_chains;  // native stacks that needed no walk
  std::atomic<std::uint64_t> cached_stacks;  // stacks that needed no merge
  std::atomic<std::uint64_t> quick_nodes;    // stacks that needed no capture
  std::atomic<std::uint64_t> rules;          // compiled
  std::atomic<std::uint64_t> large_rules;    // of these, too large to cache
  std::atomic<std::uint64_t> odd_rules;      // of these, libunwind's
  std::atomic<std::uint64_t> different;
};
extern SelfCheckCounts* g_counts;

void start_self_check(InHook) noexcept;

// `stack` was found from `at` outwards.
void check_native(InHook, const Registers& at, ThreadStacks&, const NativeStack& stack) noexcept;

// cached_chain() returned `chain` for `at`.
void check_cached_chain(InHook, const Registers& at, ThreadStacks&, std::uint64_t chain) noexcept;

// These chains were merged and interned: the thread's cache must equal the full merge of full
// walks.
void check_merged(InHook, ThreadStacks&, const NativeStack&, const PythonStack&,
                  bool in_handler) noexcept;

// They were not merged because of a cache hit: its node must be that of the full merge of full
// walks.
void check_cached_stack(InHook, const Registers& at, ThreadStacks&, const PythonStack&,
                        const CachedStack&) noexcept;

// quick_node() found `node` below `root`: capture() must return the same.
void check_quick_node(InHook, ThreadStacks&, std::uint32_t root, std::uint32_t node) noexcept;

void count_rule(PackedRule) noexcept;

// Counts and prints a difference.
void report_difference(InHook, const char* what, std::uint64_t where, std::uint64_t found,
                       std::uint64_t expected) noexcept;

}  // namespace oomrec::stack

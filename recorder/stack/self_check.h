// The build option self_check: whether what is taken over from a thread's last stack is what a full
// walk finds, for every stack, and whether libunwind finds it too, for every 64th.
//
// OOMREC_SELF_CHECK names a file of the size of Counts, zeroed at first, to which all processes
// add. A difference is counted there and printed; without such a file it ends the program.
#pragma once

#include <atomic>

#include "recorder/stack/memo.h"

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
  std::atomic<std::uint64_t> reusing;        // stacks of which a part was taken over
  std::atomic<std::uint64_t> reused_frames;  // taken over
  std::atomic<std::uint64_t> oracle_stacks;  // compared with libunwind
  std::atomic<std::uint64_t> oracle_frames;
  std::atomic<std::uint64_t> oracle_ends;  // it knew less than we: a guess, no room on the stack
  std::atomic<std::uint64_t> python_frames;
  std::atomic<std::uint64_t> python_reused;
  std::atomic<std::uint64_t> known_chains;  // native ones that were not walked
  std::atomic<std::uint64_t> known_stacks;  // that were not merged
  std::atomic<std::uint64_t> rules;         // compiled
  std::atomic<std::uint64_t> large_rules;   // of these, such as are compiled each time
  std::atomic<std::uint64_t> odd_rules;     // of these, libunwind's
  std::atomic<std::uint64_t> different;
};
extern SelfCheckCounts* g_counts;

void start_self_check(InHook) noexcept;

// `stack` is what was found from `at` outwards.
void check_native(InHook, const Registers& at, ThreadStacks&, const NativeStack& stack) noexcept;

// known_chain() says this of `at`.
void check_known_chain(InHook, const Registers& at, ThreadStacks&, std::uint64_t chain) noexcept;

// These chains were merged and interned: the thread's memo of them is what the whole merge of full
// walks gives.
void check_merged(InHook, ThreadStacks&, const NativeStack&, const PythonStack&,
                  bool in_handler) noexcept;

// They were not, because they are known: by the node that the whole merge of full walks has.
void check_known_stack(InHook, const Registers& at, ThreadStacks&, const PythonStack&,
                       const KnownStack&) noexcept;

void count_rule(PackedRule) noexcept;

// Counts and prints a difference, for whoever finds one.
void report_difference(InHook, const char* what, std::uint64_t where, std::uint64_t found,
                       std::uint64_t expected) noexcept;

}  // namespace oomrec::stack

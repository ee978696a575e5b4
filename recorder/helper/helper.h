// The helper: a process that shares our memory and nothing else, and does one piece of work at a
// time. It knows nothing of bundles.
//
// It is made with clone(CLONE_VM): no thread of the process (Threads stays 1), no child that wait()
// sees, no SIGCHLD, descriptors of its own. All signals are blocked in it, because a handler of the
// program would run in both. It has the failing thread's TLS, so nothing that it does uses errno or
// thread-local state. Where clone is refused the work is done in place, on the same stack.
//
// Whoever has claimed it prepares the work; until the helper has ended nobody else may. The calls
// of those who wait are system::call(): the tests that make the n-th call of the work fail do not
// count them.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace oomrec::helper {

struct Stack {
  alignas(16) char bytes[64 * 1024];
};

// One word tells the state: kernel and helper write it, waiting is a futex on it.
//   0         nobody at work             (the kernel, at the helper's death: CHILD_CLEARTID)
//   kClaimed  a thread prepares          (that thread, from 0)
//   tid       the helper works           (the kernel: CHILD_SETTID)
//   kDataDone what is waited for is done (the helper)
inline constexpr int kClaimed = -1;
inline constexpr int kDataDone = -2;

int process_id() noexcept;

// Before the first claim: this process' it is.
void prepare() noexcept;

// Waits until nobody has it, and takes away the process of the helper before. False: at
// `deadline_ns` somebody still has it, or no system call may be made.
bool claim(std::uint64_t deadline_ns) noexcept;

// By whoever has it and has no work after all.
void release() noexcept;

// By whoever has it: its pid, or minus an errno where clone is refused; then the work has been done
// in place (`in_place` says so to it) if it may be, and it is released. Else the helper's end does
// that.
long start(Stack&, void (*work)(void*) noexcept, void* argument, bool& in_place,
           bool may_be_in_place) noexcept;

// By the helper, while it goes on.
void tell_data_done() noexcept;

// Whether the helper `pid` works; without `to_the_end` on what is waited for.
bool is_at_work(long pid, bool to_the_end) noexcept;

// Waits while that is so. False: at the deadline it still is.
bool wait_for(long pid, bool to_the_end, std::uint64_t deadline_ns) noexcept;

// Nothing is left to be waited for or taken away. False: at the deadline there is.
bool finish(std::uint64_t deadline_ns) noexcept;

// Kills the helper `pid`, unless it has gone already.
void give_up(long pid) noexcept;

}  // namespace oomrec::helper

// The helper: a process that shares our memory and nothing else, and does one task at a time.
// Independent of bundles.
//
// clone(CLONE_VM) makes it: not a thread of the process (Threads stays 1), not a child that wait()
// sees, no SIGCHLD, its own descriptors. It blocks all signals, because a handler of the program
// would act on the memory of both. It shares the failing thread's TLS, so its code uses neither
// errno nor thread-local state. When clone fails, the task runs in place, on the same stack.
//
// The thread that claims the helper prepares the task; other threads wait until the helper ends.
// Waiting uses system::call(), not system::fallible_call(): the tests that fail the n-th call of a
// task must not count the waits.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace oomrec::helper {

struct Stack {
  alignas(16) char bytes[64 * 1024];
};

// One futex word holds the state.
//   value      meaning                        written by
//   0          idle                           the kernel, when the helper ends (CHILD_CLEARTID)
//   kClaimed   a thread prepares a task       that thread, from 0
//   tid        the helper works               the kernel (CHILD_SETTID)
//   kDataDone  the data is safe, the helper   the helper
//              still works
inline constexpr int kClaimed = -1;
inline constexpr int kDataDone = -2;

int process_id() noexcept;

// Makes the calling process the owner. Call before the first claim.
void prepare() noexcept;

// Waits until the helper is idle, reaps the last one and claims it. False: still busy at
// `deadline_ns`, or a sandbox forbids system calls.
bool claim(std::uint64_t deadline_ns) noexcept;

// Drops a claim without starting a task.
void release() noexcept;

// What start() does when clone fails.
enum class Fallback : bool { none, in_place };

// Starts the claimed helper: its pid, or minus an errno when clone fails. Then the task has run
// already (`in_place` is set before it runs) if the fallback allows it, and the claim is released.
// Otherwise the helper's end releases it. The kernel stores the pid in `started` before the helper
// runs, which may be killed at its first page: the OOM killer names it or the process.
long start(Stack&, void (*work)(void*) noexcept, void* argument, bool& in_place, Fallback fallback,
           std::atomic<int>& started) noexcept;

// The helper's first call.
void publish_running() noexcept;

// The helper wakes the thread that waits for the data, and goes on working.
void notify_data_done() noexcept;

// Which point of a task to wait for.
enum class Until : bool { data_done, end };

// Whether the helper `pid` has yet to reach that point.
bool is_working(long pid, Until until) noexcept;

// Waits for that point. False: not reached at the deadline.
bool wait_for(long pid, Until until, std::uint64_t deadline_ns) noexcept;

// Waits until the helper is idle and reaps it. False: still busy at the deadline.
bool finish(std::uint64_t deadline_ns) noexcept;

// Whether process `self` is writing a bundle, or about to.
bool is_writing(int self) noexcept;

// Kills the helper `pid` if it is still the current one.
void kill_helper(long pid) noexcept;

// Starts a process that shares our memory, on its own stack: clone(2) with these flags; the new
// process calls run(argument) and exits with 0. `pid`: for CLONE_PARENT_SETTID; `word`: for
// CLONE_CHILD_SETTID and CLONE_CHILD_CLEARTID. Returns the pid, or minus an errno.
long clone_onto(void* stack_top, unsigned long flags, const void* pid, const void* word,
                void (*run)(void*) noexcept, void* argument) noexcept;

}  // namespace oomrec::helper

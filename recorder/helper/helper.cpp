#include "recorder/helper/helper.h"

#include <linux/futex.h>
#include <sanitizer/asan_interface.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#include <algorithm>
#include <cerrno>
#include <limits>

#include "common/machine/stack_switch.h"
#include "common/system/files.h"
#include "common/system/syscalls.h"
#include "common/system/units.h"

#ifdef OOMREC_ADDRESS_SANITIZER
#endif

namespace oomrec::helper {
namespace {

constexpr std::uint64_t kSlice = kSecondNs / 100;

constinit std::atomic<int> g_word{0};
// The helper's pid, until it is reaped. The helper stores it, too, so a thread that sees the
// helper's end also sees its pid.
constinit std::atomic<int> g_helper{0};
constinit std::atomic<int> g_owner{0};  // the process these words belong to

// Waits while `waits(word)`; false at `deadline_ns`. In slices: at the helper's end the kernel
// wakes one waiter only, perhaps one that keeps waiting. The futex is a shared one, because the
// kernel's wake is.
template <class Waits>
bool wait_while(Waits&& waits, std::uint64_t deadline_ns) noexcept {
  for (int word = g_word.load(std::memory_order_acquire); waits(word);
       word = g_word.load(std::memory_order_acquire)) {
    const std::uint64_t now = system::monotonic_ns();
    if (now >= deadline_ns) return false;
    const std::uint64_t left = std::min(deadline_ns - now, kSlice);
    const timespec time{static_cast<time_t>(left / kSecondNs), static_cast<long>(left % kSecondNs)};
    if (system::call(SYS_futex, &g_word, FUTEX_WAIT, word, &time) == -EPERM) return false;
  }
  return true;
}

// Only with the claim: without it this could wait for the helper that another thread has just
// started.
void reap() noexcept {
  const int helper = g_helper.exchange(0, std::memory_order_acq_rel);
  if (helper == 0) return;
  while (system::call(SYS_wait4, helper, nullptr, __WCLONE, nullptr) == -EINTR) {
  }
}

// After a fork the words describe the parent's helper, which this process does not have. After a
// vfork they may describe the child's helper, which shares this memory: wait for it. False: it is
// still working at `deadline_ns`.
bool take_over(std::uint64_t deadline_ns) noexcept {
  const int self = process_id();
  const int before = g_owner.load(std::memory_order_acquire);
  if (before == self) return true;
  const bool of_parent = before == static_cast<int>(system::call(SYS_getppid));
  const auto works = [](int word) noexcept {
    const int helper = g_helper.load(std::memory_order_relaxed);
    return word != 0 && helper != 0 && system::call(SYS_kill, helper, 0) == 0;
  };
  if (!of_parent && !wait_while(works, deadline_ns)) return false;
  g_owner.store(self, std::memory_order_release);
  g_helper.store(0, std::memory_order_relaxed);
  g_word.store(0, std::memory_order_release);
  return true;
}

// AddressSanitizer still considers the frames of a killed helper in use.
void clear([[maybe_unused]] Stack& stack) noexcept {
#ifdef OOMREC_ADDRESS_SANITIZER
  __asan_unpoison_memory_region(stack.bytes, sizeof stack.bytes);
#endif
}

}  // namespace

int process_id() noexcept { return static_cast<int>(system::call(SYS_getpid)); }

void prepare() noexcept { g_owner.store(process_id(), std::memory_order_relaxed); }

bool claim(std::uint64_t deadline_ns) noexcept {
  if (system::is_sandboxed() || !take_over(deadline_ns)) return false;
  for (int idle = 0; !g_word.compare_exchange_strong(idle, kClaimed, std::memory_order_acq_rel);
       idle = 0) {
    if (!wait_while([](int word) noexcept { return word != 0; }, deadline_ns)) return false;
  }
  reap();
  return true;
}

void release() noexcept {
  g_word.store(0, std::memory_order_release);
  system::call(SYS_futex, &g_word, FUTEX_WAKE, std::numeric_limits<int>::max());
}

void publish_running() noexcept { g_helper.store(process_id(), std::memory_order_release); }

long start(Stack& stack, void (*work)(void*) noexcept, void* argument, bool& in_place,
           Fallback fallback, std::atomic<int>& started) noexcept {
  const std::uint64_t all = ~std::uint64_t{0};
  std::uint64_t before = 0;
  system::call(SYS_rt_sigprocmask, SIG_SETMASK, &all, &before, sizeof all);
  in_place = false;
  clear(stack);
  void* const top = stack.bytes + sizeof stack.bytes;
  const long helper = clone_onto(
      top,
      CLONE_VM | CLONE_UNTRACED | CLONE_PARENT_SETTID | CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID,
      &started, &g_word, work, argument);
  if (helper < 0) {
    in_place = true;
    // In place, too, the task needs its own stack: the program's may be a small signal stack.
    if (fallback == Fallback::in_place) machine::run_on_stack(top, work, argument);
    release();
  } else {
    int none = 0;
    g_helper.compare_exchange_strong(none, static_cast<int>(helper), std::memory_order_acq_rel);
  }
  system::call(SYS_rt_sigprocmask, SIG_SETMASK, &before, nullptr, sizeof before);
  return helper;
}

void notify_data_done() noexcept {
  g_word.store(kDataDone, std::memory_order_release);
  system::call(SYS_futex, &g_word, FUTEX_WAKE, 1);
}

bool is_working(long pid, Until until) noexcept {
  const int word = g_word.load(std::memory_order_acquire);
  return word != 0 && (until == Until::end || word != kDataDone) &&
         g_helper.load(std::memory_order_acquire) == pid;
}

bool wait_for(long pid, Until until, std::uint64_t deadline_ns) noexcept {
  return wait_while([=](int) noexcept { return is_working(pid, until); }, deadline_ns);
}

bool finish(std::uint64_t deadline_ns) noexcept {
  if (g_word.load(std::memory_order_acquire) == 0 && g_helper.load(std::memory_order_relaxed) == 0)
    return true;
  if (!claim(deadline_ns)) return false;
  release();
  return true;
}

bool is_writing(int self) noexcept {
  return g_word.load(std::memory_order_acquire) != 0 &&
         g_owner.load(std::memory_order_relaxed) == self;
}

void kill_helper(long pid) noexcept {
  if (g_helper.load(std::memory_order_acquire) == pid) system::call(SYS_kill, pid, SIGKILL);
}

long clone_onto(void* stack_top, unsigned long flags, const void* pid, const void* word,
                void (*run)(void*) noexcept, void* argument) noexcept {
  if (system::is_sandboxed()) return -EPERM;
  return machine::clone_onto(stack_top, flags, pid, word, run, argument);
}

}  // namespace oomrec::helper

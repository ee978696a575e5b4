#include "recorder/state/notifications.h"

#include <linux/futex.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <limits>

#include "common/system/files.h"
#include "common/system/syscalls.h"
#include "recorder/session/writer.h"
#include "recorder/state/state.h"

namespace oomrec::recorder {

using session::g_session;

namespace {

constexpr std::uint64_t kSliceMs = 100;  // where no hook may wake a waiter

constinit std::atomic<std::uint32_t> g_waiters{0};

}  // namespace

void notify_waiters(InHook) noexcept {
  std::atomic<std::uint32_t>& word = g_session.header().notifications;
  word.fetch_add(1, std::memory_order_seq_cst);
  if (g_waiters.load(std::memory_order_seq_cst) != 0)
    system::call(SYS_futex, &word, FUTEX_WAKE, std::numeric_limits<int>::max());
}

std::uint32_t wait_for_notification(std::uint32_t seen, std::uint32_t timeout_ms) noexcept {
  const std::uint64_t deadline = system::monotonic_ns() + std::uint64_t{timeout_ms} * 1'000'000;
  const auto left = [&]() noexcept {
    const std::uint64_t now = system::monotonic_ns();
    return now < deadline ? deadline - now : 0;
  };
  // There is no session yet: a fork's child gets one later, and so does a program that calls
  // oomrec_start().
  while (g_state.phase.load(std::memory_order_acquire) != Phase::active) {
    const std::uint64_t pause = std::min(left(), kSliceMs * 1'000'000);
    if (seen != 0 || pause == 0) return 0;
    const timespec time{0, static_cast<long>(pause)};
    if (system::call_unchecked(SYS_nanosleep, &time, nullptr) == -EINTR) return 0;
  }
  std::atomic<std::uint32_t>& word = g_session.header().notifications;
  g_waiters.fetch_add(1, std::memory_order_seq_cst);
  std::uint64_t pause = left();
  while (word.load(std::memory_order_seq_cst) == seen && pause != 0) {
    if (system::is_sandboxed()) pause = std::min(pause, kSliceMs * 1'000'000);
    const timespec time{static_cast<time_t>(pause / 1'000'000'000),
                        static_cast<long>(pause % 1'000'000'000)};
    // The program requested this wait, so the system call is made even in a sandbox.
    if (system::call_unchecked(SYS_futex, &word, FUTEX_WAIT, seen, &time) == -EINTR) break;
    pause = left();
  }
  g_waiters.fetch_sub(1, std::memory_order_relaxed);
  return word.load(std::memory_order_seq_cst);
}

void reset_waiters_after_fork(InHook) noexcept { g_waiters.store(0, std::memory_order_relaxed); }

}  // namespace oomrec::recorder

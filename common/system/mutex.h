// The recorder's lock. A thread that waits spins for about a microsecond, then sleeps until the
// owner wakes it, so a thousand waiters cost no more than one, and none starves: each gets its
// turn.
//
// It gives up instead of hanging the program. If the lock does not change hands for two seconds
// (the owner was cancelled inside), a waiter poisons it. From then on lock() fails, and the events
// that need it are dropped and counted. Signal handlers never take a lock: inside the recorder they
// only count (HookScope::interrupted_recorder).
#pragma once

#include <linux/futex.h>
#include <time.h>

#include <atomic>
#include <cerrno>
#include <cstdint>

#include "common/machine/instructions.h"
#include "common/system/files.h"
#include "common/system/syscalls.h"

namespace oomrec::system {

class Mutex {
 public:
  // False: poisoned; the caller goes on without the lock.
  [[nodiscard]] bool lock() noexcept { return try_lock() || wait(); }

  // False: taken or poisoned; the caller goes on without the lock.
  [[nodiscard]] bool try_lock() noexcept {
    std::uint32_t expected = kFree;
    return state_.compare_exchange_strong(expected, kHeld, std::memory_order_acquire);
  }

  // Also repairs a poisoned lock whose owner was only slow, and frees one whose owner does not
  // exist in a fork's child.
  void unlock() noexcept {
    if (state_.exchange(kFree, std::memory_order_release) == kContended) [[unlikely]]
      wake();
  }

  bool held() const noexcept { return state_.load(std::memory_order_relaxed) != kFree; }

 private:
  // kContended: held, and others sleep or are about to.
  static constexpr std::uint32_t kFree = 0, kHeld = 1, kContended = 2, kPoisoned = 3;
  static constexpr int kSpins = 25;
  static constexpr std::uint64_t kPatienceNs = 2'000'000'000;

  [[gnu::noinline, gnu::cold]] void wake() noexcept {
    turns_.fetch_add(1, std::memory_order_relaxed);
    call(SYS_futex, &state_, FUTEX_WAKE_PRIVATE, 1);
  }

  [[gnu::noinline, gnu::cold]] bool wait() noexcept {
    for (int spin = 0; spin < kSpins; ++spin) {
      if (state_.load(std::memory_order_relaxed) == kFree && try_lock()) return true;
      machine::spin_pause();
    }
    std::uint32_t turn = turns_.load(std::memory_order_relaxed);
    std::uint64_t since_ns = coarse_ns();
    for (std::uint32_t seen = state_.load(std::memory_order_relaxed);;) {
      if (seen == kPoisoned) return false;
      if (seen == kFree) {  // contended: unlock() must wake the next waiter, if there is one
        if (state_.compare_exchange_weak(seen, kContended, std::memory_order_acquire)) return true;
        continue;
      }
      if (seen == kHeld && !state_.compare_exchange_weak(seen, kContended)) continue;
      sleep();
      if (const std::uint32_t now = turns_.load(std::memory_order_relaxed); now != turn) {
        turn = now;
        since_ns = coarse_ns();
      } else if (coarse_ns() - since_ns > kPatienceNs) {
        state_.store(kPoisoned, std::memory_order_relaxed);
        return false;
      }
      seen = state_.load(std::memory_order_relaxed);
    }
  }

  // Until the lock is unlocked, or for 100 ms.
  void sleep() noexcept {
    const timespec slice{0, 100'000'000};
    const long result = call(SYS_futex, &state_, FUTEX_WAIT_PRIVATE, kContended, &slice);
    if (result == 0 || result == -EAGAIN || result == -ETIMEDOUT || result == -EINTR) return;
    const timespec pause{0, 50'000};  // a sandbox forbids futexes
    call(SYS_nanosleep, &pause, nullptr);
  }

  std::atomic<std::uint32_t> state_{kFree};
  std::atomic<std::uint32_t> turns_{0};  // unlocks while others waited
};

// Holds a mutex until the end of the scope, if it got it.
template <bool (Mutex::*kAcquire)() noexcept>
class BasicGuard {
 public:
  explicit BasicGuard(Mutex& mutex) noexcept : mutex_(mutex), locked_((mutex.*kAcquire)()) {}
  ~BasicGuard() {
    if (locked_) mutex_.unlock();
  }
  BasicGuard(const BasicGuard&) = delete;
  BasicGuard& operator=(const BasicGuard&) = delete;
  explicit operator bool() const noexcept { return locked_; }

 private:
  Mutex& mutex_;
  const bool locked_;
};
using MutexGuard = BasicGuard<&Mutex::lock>;
// For work that another thread may do, or that may be done later.
using TryGuard = BasicGuard<&Mutex::try_lock>;

}  // namespace oomrec::system

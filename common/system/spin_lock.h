// The recorder's lock, held for a few hundred nanoseconds at a time.
//
// It gives up instead of hanging the program. A thread that waits in vain for about two seconds
// (the owner was cancelled inside, or starves) poisons the lock. From then on lock() fails, and the
// events that need it are dropped and counted. Signal handlers never take a lock: inside the
// recorder they only count (HookScope::interrupted_recorder).
#pragma once

#include <time.h>

#include <atomic>
#include <cstdint>

#include "common/system/syscalls.h"

namespace oomrec::system {

class SpinLock {
 public:
  // False: poisoned; the caller goes on without the lock.
  [[nodiscard]] bool lock() noexcept {
    std::uint32_t expected = kFree;
    if (state_.compare_exchange_strong(expected, kHeld, std::memory_order_acquire)) return true;
    return wait();
  }

  // False: taken or poisoned; the caller goes on without the lock.
  [[nodiscard]] bool try_lock() noexcept {
    std::uint32_t expected = kFree;
    return state_.compare_exchange_strong(expected, kHeld, std::memory_order_acquire);
  }

  // A plain store: an owner that was only slow thereby repairs a poisoned lock.
  void unlock() noexcept { state_.store(kFree, std::memory_order_release); }

  bool held() const noexcept { return state_.load(std::memory_order_relaxed) != kFree; }

 private:
  static constexpr std::uint32_t kFree = 0, kHeld = 1, kPoisoned = 2;
  static constexpr int kSpins = 200, kSleeps = 20'000;

  [[gnu::noinline, gnu::cold]] bool wait() noexcept {
    for (int round = 0; round < kSleeps; ++round) {
      for (int spin = 0; spin < kSpins; ++spin) {
        std::uint32_t expected = kFree;
        if (state_.compare_exchange_weak(expected, kHeld, std::memory_order_acquire)) return true;
        if (expected == kPoisoned) return false;
        __builtin_ia32_pause();
      }
      const timespec pause{0, 50'000};
      call(SYS_nanosleep, &pause, nullptr);
    }
    state_.store(kPoisoned, std::memory_order_relaxed);
    return false;
  }

  std::atomic<std::uint32_t> state_{kFree};
};

class SpinGuard {
 public:
  explicit SpinGuard(SpinLock& lock) noexcept : lock_(lock), locked_(lock.lock()) {}
  ~SpinGuard() {
    if (locked_) lock_.unlock();
  }
  SpinGuard(const SpinGuard&) = delete;
  SpinGuard& operator=(const SpinGuard&) = delete;
  explicit operator bool() const noexcept { return locked_; }

 private:
  SpinLock& lock_;
  const bool locked_;
};

// For work that another thread may do, or that may be done later.
class TryGuard {
 public:
  explicit TryGuard(SpinLock& lock) noexcept : lock_(lock), locked_(lock.try_lock()) {}
  ~TryGuard() {
    if (locked_) lock_.unlock();
  }
  TryGuard(const TryGuard&) = delete;
  TryGuard& operator=(const TryGuard&) = delete;
  explicit operator bool() const noexcept { return locked_; }

 private:
  SpinLock& lock_;
  const bool locked_;
};

}  // namespace oomrec::system

// The recorder's lock: exclusive, fair enough that none starves, and given up if its owner is gone.
#include "common/system/mutex.h"

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

using namespace oomrec;
using namespace std::chrono_literals;

TEST_CASE("one thread at a time") {
  system::Mutex mutex;
  std::uint64_t count = 0;  // not atomic: the lock protects it
  constexpr std::uint64_t kThreads = 64, kTurns = 2000;
  std::vector<std::thread> threads;
  for (std::uint64_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (std::uint64_t turn = 0; turn < kTurns; ++turn) {
        const system::MutexGuard guard{mutex};
        if (guard) ++count;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(count == kThreads * kTurns);
  CHECK(!mutex.held());
}

TEST_CASE("a lock that changes hands is never given up, however long one waits") {
  system::Mutex mutex;
  std::atomic<bool> ends{false};
  std::atomic<unsigned> refused{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      while (!ends) {
        const system::MutexGuard guard{mutex};
        if (!guard) ++refused;
        std::this_thread::sleep_for(400ms);  // seven others: more than two seconds in vain
      }
    });
  }
  std::this_thread::sleep_for(4s);
  ends = true;
  for (std::thread& thread : threads) thread.join();
  CHECK(refused == 0);
}

TEST_CASE("a lock whose owner is gone is given up, and an owner that was only slow repairs it") {
  system::Mutex mutex;
  REQUIRE(mutex.lock());
  CHECK(!mutex.try_lock());
  std::thread{[&] { CHECK(!mutex.lock()); }}.join();
  CHECK(!mutex.lock());  // at once
  mutex.unlock();
  CHECK(mutex.lock());
  mutex.unlock();
}

TEST_CASE("a waiter that sleeps is woken") {
  system::Mutex mutex;
  REQUIRE(mutex.lock());
  std::thread waiter{[&] {
    CHECK(mutex.lock());
    mutex.unlock();
  }};
  std::this_thread::sleep_for(50ms);
  const auto before = std::chrono::steady_clock::now();
  mutex.unlock();
  waiter.join();
  CHECK(std::chrono::steady_clock::now() - before < 90ms);  // it would look again after 100 ms
}

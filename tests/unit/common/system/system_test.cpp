// The recorder's lock, the kernel's page map, and text without the C library.
#include "common/system/mutex.h"

#include <doctest/doctest.h>
#include <sys/mman.h>
#include <sys/utsname.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string_view>
#include <thread>
#include <vector>

#include "common/machine/page.h"
#include "common/system/files.h"
#include "common/system/pagemap.h"
#include "common/system/text.h"

using namespace oomrec;
using namespace std::chrono_literals;

// --- The recorder's lock: exclusive, fair enough that none starves, and given up if its owner is
// gone

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

// How long a waiter that sleeps takes to have the lock once it is free.
std::chrono::nanoseconds handover() {
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
  return std::chrono::steady_clock::now() - before;
}

TEST_CASE("a waiter that sleeps is woken") {
  auto least = handover();
  // It would look again after 100 ms. On a busy machine it may not run before that.
  for (int i = 0; i < 50 && least >= 90ms; ++i) least = std::min(least, handover());
  CHECK(least < 90ms);
}

namespace oomrec::system {
namespace {

const std::uint64_t kPageBytes = machine::page_bytes();
constexpr int kInstallGuard = 102;  // MADV_GUARD_INSTALL

bool kernel_finds_them() {
  utsname kernel{};
  int major = 0, minor = 0;
  return uname(&kernel) == 0 && std::sscanf(kernel.release, "%d.%d", &major, &minor) == 2 &&
         (major > 6 || (major == 6 && minor >= 15));
}

TEST_CASE("the guard regions of a mapping are found one after the other") {
  const std::uint64_t kBytes = 40 * kPageBytes;
  void* const mapping =
      mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(mapping != MAP_FAILED);
  const auto start = reinterpret_cast<std::uint64_t>(mapping), end = start + kBytes;
  const auto page = [start](std::uint64_t number) { return start + number * kPageBytes; };
  static_cast<char*>(mapping)[5 * kPageBytes] = 1;

  GuardRegion found{};
  CHECK_FALSE(find_guard_region(start, end, found));
  if (!kernel_finds_them()) {
    MESSAGE("not tested: before Linux 6.15");
  } else {
    REQUIRE(madvise(reinterpret_cast<void*>(page(10)), kPageBytes, kInstallGuard) == 0);
    REQUIRE(madvise(reinterpret_cast<void*>(page(20)), 3 * kPageBytes, kInstallGuard) == 0);
    REQUIRE(find_guard_region(start, end, found));
    CHECK(found.start == page(10));
    CHECK(found.end == page(11));
    REQUIRE(find_guard_region(found.end, end, found));
    CHECK(found.start == page(20));
    CHECK(found.end == page(23));
    CHECK_FALSE(find_guard_region(found.end, end, found));
  }
  munmap(mapping, kBytes);
}

TEST_CASE("without /proc there are none") {
  const Roots kept = g_roots;
  Text(g_roots.proc) << "/nowhere";
  GuardRegion found{};
  CHECK_FALSE(find_guard_region(0, UINT64_MAX & ~(kPageBytes - 1), found));
  g_roots = kept;
}

TEST_CASE("the pages of a mapping that were touched are in memory, across several reads") {
  constexpr std::size_t kPages = 300;
  void* const mapping = mmap(nullptr, kPages * kPageBytes, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(mapping != MAP_FAILED);
  madvise(mapping, kPages * kPageBytes, MADV_NOHUGEPAGE);
  const auto is_touched = [](std::size_t page) { return page == 1 || page == 131 || page > 297; };
  for (std::size_t page = 0; page < kPages; ++page)
    if (is_touched(page)) static_cast<char*>(mapping)[page * kPageBytes] = 1;
  const auto start = reinterpret_cast<std::uint64_t>(mapping);

  bool resident[kPages];
  std::fill_n(resident, kPages, true);
  REQUIRE(read_resident_pages(start, kPages, resident));
  for (std::size_t page = 0; page < kPages; ++page) CHECK(resident[page] == is_touched(page));

  munmap(mapping, kPages * kPageBytes);
  REQUIRE(read_resident_pages(start, kPages, resident));
  CHECK(std::count(resident, resident + kPages, true) == 0);
}

TEST_CASE("without /proc it is not known") {
  const Roots kept = g_roots;
  Text(g_roots.proc) << "/nowhere";
  bool resident = true;
  CHECK_FALSE(read_resident_pages(0x1000, 1, &resident));
  CHECK(resident);
  g_roots = kept;
}

}  // namespace
}  // namespace oomrec::system

namespace oomrec::system {
namespace {

TEST_CASE("the fields of /proc/PID/stat are those behind the name, whatever that is") {
  for (const std::string_view name : {"cat", "", "a b", "3) Z 4 (", "))", "("}) {
    char text[64];
    Text(text) << "17 (" << name << ") S 16 -1 0\n";
    CHECK(stat_field(text, 3) == "S");
    CHECK(stat_field(text, 4) == "16");
    CHECK(stat_field(text, 5) == "-1");
    CHECK(stat_field(text, 6) == "0");
    CHECK(stat_field(text, 7).empty());
  }
}

TEST_CASE("a text that is none has no fields") {
  for (const std::string_view text : {"", "17 (cat", "17 (cat)", "17 (cat)\n", ")"})
    CHECK(stat_field(text, 3).empty());
}

}  // namespace
}  // namespace oomrec::system

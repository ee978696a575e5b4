// A free-threaded interpreter's heap: its reserved range counts as far as it is resident, or as far
// as its objects need.
#include "recorder/process/object_heap.h"

#include <doctest/doctest.h>

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <ctime>

#include "recorder/events/mappings.h"
#include "recorder/events/objects.h"
#include "recorder/python/interpreter.h"
#include "tests/unit/recorder/running.h"

using namespace oomrec;
using namespace oomrec::running;
using recorder::Source;
using session::g_session;

namespace {

constexpr std::uint64_t kBytes = 256 * kMiB;
constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

char* reserve() {
  stack::g_interpreter.may_have_own_heap = true;
  char* const made =
      static_cast<char*>(mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, kFlags, -1, 0));
  REQUIRE(made != MAP_FAILED);
  madvise(made, kBytes, MADV_NOHUGEPAGE);  // so that a page is a page
  const auto address = reinterpret_cast<std::uint64_t>(made);
  recorder::on_map(kHook, {Api::mmap, address, kBytes, PROT_READ | PROT_WRITE, kFlags, false});
  recorder::object_pool_holder(kHook);
  recorder::start_object_heap();
  recorder::add_object_heap(kHook, address, kBytes);
  return made;
}

// Waits until the last look was long enough ago: looks take at most a hundredth of the time,
// and on a busy machine one look may take long.
void look() {
  static double took_seconds = 0;
  const auto now = [] {
    timespec at{};
    clock_gettime(CLOCK_MONOTONIC, &at);
    return static_cast<double>(at.tv_sec) + 1e-9 * static_cast<double>(at.tv_nsec);
  };
  usleep(static_cast<useconds_t>(1e6 * 110 * took_seconds));
  const double begin = now();
  recorder::update_object_heap(kHook);
  took_seconds = now() - begin;
}

std::uint64_t counted() { return static_cast<std::uint64_t>(totals(Space::map).live_bytes); }
std::uint64_t reserved() {
  return g_session.header().spaces[static_cast<std::size_t>(Space::map)].reserved_bytes;
}
std::int64_t free_in_pool() {
  return static_cast<std::int64_t>(
      live::full_holder(recorder::object_pool_holder(kHook)).live_bytes.load());
}

}  // namespace

TEST_CASE("of a reserved range the resident part counts") {
  need(Mode::sampled);
  doubles::t_stack = 5;
  const std::uint64_t before = counted(), reserved_before = reserved();
  const auto blocks_before = totals(Space::map).live_count;
  char* const heap = reserve();
  const auto address = reinterpret_cast<std::uint64_t>(heap);
  CHECK(counted() == before);
  CHECK(reserved() == reserved_before + kBytes);

  std::memset(heap + 8 * kMiB, 1, 100 * kMiB);
  look();
  CHECK(counted() == before + 100 * kMiB);
  CHECK(reserved() == reserved_before + kBytes - 100 * kMiB);
  CHECK(free_in_pool() == 100 * kMiB);

  // A hole: mimalloc trims what it has mapped to its alignment.
  munmap(heap + 58 * kMiB, 100 * kMiB);
  recorder::on_unmap(kHook, Api::munmap, address + 58 * kMiB, 100 * kMiB);
  look();
  CHECK(counted() == before + 50 * kMiB);
  CHECK(free_in_pool() == 50 * kMiB);
  std::memset(heap + 200 * kMiB, 1, 6 * kMiB);  // behind the hole
  look();
  CHECK(counted() == before + 56 * kMiB);
  CHECK(totals(Space::map).live_count == blocks_before + 1);  // however often it grows

  munmap(heap, kBytes);
  recorder::on_unmap(kHook, Api::munmap, address, kBytes);
  look();
  CHECK(counted() == before);
  CHECK(reserved() == reserved_before);
}

TEST_CASE("a large object counts before it is touched, and takes what is free first") {
  need(Mode::sampled);
  doubles::t_stack = 5;
  const std::uint64_t before = counted();
  char* const heap = reserve();
  const auto address = reinterpret_cast<std::uint64_t>(heap);
  const auto make = [&](std::uint64_t at, std::uint64_t bytes) {
    recorder::on_object(kHook, Source::pool, Api::PyObject_Malloc, at, bytes, 1);
  };
  CHECK(recorder::object_heap_growth(30 * kMiB) == 30 * kMiB);
  make(address, 30 * kMiB);
  CHECK(counted() == before + 30 * kMiB);
  CHECK(free_in_pool() == 0);
  look();  // none of it is resident
  CHECK(counted() == before + 30 * kMiB);

  std::memset(heap, 1, 30 * kMiB);
  look();
  CHECK(counted() == before + 30 * kMiB);
  const recorder::FreedObject freed = recorder::on_object_freed(kHook, Api::PyObject_Free, address);
  CHECK(counted() == before);
  recorder::restore_object(kHook, freed);  // a realloc that failed
  CHECK(counted() == before + 30 * kMiB);
  CHECK(free_in_pool() == 0);
  recorder::on_object_freed(kHook, Api::PyObject_Free, address);
  CHECK(counted() == before);
  look();  // it is still resident, and free
  CHECK(counted() == before + 30 * kMiB);
  CHECK(free_in_pool() == 30 * kMiB);
  CHECK(recorder::object_heap_growth(30 * kMiB) == 0);
  CHECK(recorder::object_heap_growth(31 * kMiB) == kMiB);
  make(address, 20 * kMiB);
  CHECK(counted() == before + 30 * kMiB);
  CHECK(free_in_pool() == 10 * kMiB);

  recorder::on_object_freed(kHook, Api::PyObject_Free, address);
  munmap(heap, kBytes);
  recorder::on_unmap(kHook, Api::munmap, address, kBytes);
  look();
  CHECK(counted() == before);
}

TEST_CASE("what the interpreter reserves is recognized by the module that asks for it") {
  need(Mode::sampled);
  doubles::t_stack = 5;
  stack::g_interpreter.has_own_heap = true;
  stack::g_interpreter.ready = true;
  recorder::start_object_heap();
  const std::uint64_t before = counted();
  const auto map = [&](int flags) {
    char* const made =
        static_cast<char*>(mmap(nullptr, kMiB, PROT_READ | PROT_WRITE, kFlags, -1, 0));
    REQUIRE(made != MAP_FAILED);
    recorder::on_map(kHook, {Api::mmap, reinterpret_cast<std::uint64_t>(made), kMiB,
                             PROT_READ | PROT_WRITE, flags, false});
    std::memset(made, 1, kMiB);
  };
  map(kFlags);
  look();
  CHECK(counted() == before + kMiB);
  map(MAP_PRIVATE | MAP_ANONYMOUS);  // counts by itself
  look();
  CHECK(counted() == before + 2 * kMiB);

  const std::uint32_t interpreter = doubles::t_module;
  doubles::t_stack = 6;
  std::uint64_t expected = before + 2 * kMiB;
  SUBCASE("an ordinary interpreter: the mapping counts") {
    stack::g_interpreter.has_own_heap = stack::g_interpreter.may_have_own_heap = false;
    expected += kMiB;
  }
  SUBCASE("one that was asked for such a heap, and has none") {
    stack::g_interpreter.has_own_heap = false;
    stack::g_interpreter.may_have_own_heap = true;
    doubles::t_module = interpreter + 1;
    doubles::t_interpreter = interpreter;
  }
  SUBCASE("another module") {
    doubles::t_module = interpreter + 1;
    doubles::t_interpreter = interpreter;
  }
  map(kFlags);
  look();
  CHECK(counted() == expected);
  doubles::t_module = doubles::t_interpreter = interpreter;
  stack::g_interpreter.has_own_heap = stack::g_interpreter.may_have_own_heap = false;
  stack::g_interpreter.ready = false;
}

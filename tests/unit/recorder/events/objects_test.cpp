// Python's objects are sampled, and move out of the pool's holder: nothing counts twice.
#include "recorder/events/objects.h"

#include <doctest/doctest.h>

#include <sys/mman.h>

#include <vector>

#include "recorder/events/mappings.h"
#include "tests/unit/recorder/forked.h"
#include "tests/unit/recorder/running.h"

using namespace oomrec;
using namespace oomrec::running;
using recorder::FreedObject;
using recorder::Source;
using session::g_session;

namespace {

constexpr std::uint64_t kPool = 0x7100'0000'0000;
constexpr std::uint32_t kMaker = 77, kOther = 78;

void map_pool(std::uint64_t bytes) {
  recorder::announce_arena(bytes);
  recorder::on_map(
      kHook, {Api::mmap, kPool, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, false});
}

// As the interpreter's functions do. True: it was recorded.
bool make(std::uint64_t address, std::uint64_t bytes, Source source = Source::pool) {
  if (recorder::passes_unrecorded(source, bytes)) return false;
  const std::uint32_t before = recorder::g_state.objects.count();
  const std::uint32_t weight = recorder::object_weight(kHook, source, bytes);
  if (weight != 0) recorder::on_object(kHook, source, Api::PyObject_Malloc, address, bytes, weight);
  return recorder::g_state.objects.count() != before;
}

std::uint64_t held_by(std::uint32_t stack, Space space) {
  const session::Holder* const holder = holder_of(stack, space);
  return holder != nullptr ? holder->live_bytes.load() : 0;
}
std::uint64_t pool_bytes() {
  return live::full_holder(recorder::object_pool_holder(kHook)).live_bytes;
}

}  // namespace

TEST_CASE("a pool is one holder, from which objects move to their stacks and back") {
  need(Mode::sampled);
  doubles::t_stack = kMaker;
  map_pool(64 * kMiB);
  CHECK(pool_bytes() == 64 * kMiB);

  std::vector<std::uint64_t> recorded;
  constexpr std::uint64_t kObjects = 500'000, kBytes = 60;
  for (std::uint64_t i = 0; i < kObjects; ++i)
    if (make(kPool + i * 64, kBytes)) recorded.push_back(kPool + i * 64);
  const std::uint64_t held = held_by(kMaker, Space::python);
  CHECK(recorded.size() > 1'000);
  CHECK(recorded.size() < kObjects / 10);
  CHECK(static_cast<double>(held) == doctest::Approx(kObjects * kBytes).epsilon(0.25));
  CHECK(pool_bytes() + held == 64 * kMiB);
  CHECK(totals(Space::map).live_bytes == 64 * kMiB);  // exact, whatever was sampled
  CHECK(totals(Space::python).live_bytes == 0);
  CHECK((holder_of(kMaker, Space::python)->flags & session::kHolderEstimated) != 0);

  for (const std::uint64_t address : recorded) {
    REQUIRE(recorder::is_recorded_object(reinterpret_cast<void*>(address)));
    recorder::on_object_freed(kHook, Api::PyObject_Free, address);
  }
  CHECK(held_by(kMaker, Space::python) == 0);
  CHECK(pool_bytes() == 64 * kMiB);
  CHECK(recorder::g_state.objects.count() == 0);
}

TEST_CASE(
    "an object that could not be moved is back; one at an address whose free was not seen replaces "
    "it") {
  need(Mode::sampled);
  doubles::t_stack = kMaker;
  while (!make(kPool, 400)) {
  }
  const std::uint64_t held = held_by(kMaker, Space::python), left = pool_bytes();
  const FreedObject freed = recorder::on_object_freed(kHook, Api::PyObject_Realloc, kPool);
  CHECK(freed.bytes == 400);
  CHECK(held_by(kMaker, Space::python) == 0);
  recorder::restore_object(kHook, freed);
  CHECK(held_by(kMaker, Space::python) == held);
  CHECK(pool_bytes() == left);
  recorder::restore_object(kHook, {});  // was not on record: nothing happens
  CHECK(pool_bytes() == left);

  doubles::t_stack = kOther;
  while (!recorder::is_recorded_object(reinterpret_cast<void*>(kPool)) ||
         held_by(kOther, Space::python) == 0)
    make(kPool, 300);
  CHECK(held_by(kMaker, Space::python) == 0);
  CHECK(pool_bytes() + held_by(kOther, Space::python) == 64 * kMiB);
  recorder::on_object_freed(kHook, Api::PyObject_Free, kPool);
  CHECK(pool_bytes() == 64 * kMiB);
}

TEST_CASE(
    "an object of malloc is recorded once: not by the heap's hook, too, and not out of the pool") {
  need(Mode::sampled);
  doubles::t_stack = kOther;
  constexpr std::uint64_t kHeap = 0x5500'0000'0000, kBytes = 2000, kObjects = 20'000;
  std::vector<std::uint64_t> recorded;
  for (std::uint64_t i = 0; i < kObjects; ++i) {
    const std::uint64_t address = kHeap + i * 4096;
    REQUIRE_FALSE(recorder::is_left_to_heap(kBytes));
    const bool passes = recorder::passes_unrecorded(Source::malloc, kBytes);
    const std::uint32_t weight =
        passes ? 0 : recorder::object_weight(kHook, Source::malloc, kBytes);
    recorder::skip_in_heap(kBytes);
    allocate(address, kBytes);
    if (weight == 0) continue;
    recorder::on_object(kHook, Source::malloc, Api::PyObject_Malloc, address, kBytes, weight);
    if (recorder::is_recorded_object(reinterpret_cast<void*>(address))) recorded.push_back(address);
  }
  // Each recorded block is an object: the heap's own hook has recorded none of them.
  std::uint64_t blocks = 0;
  for (std::uint32_t i = 1; i < g_session.live_blocks.size(); ++i)
    blocks += g_session.live_blocks.at(i).address >= kHeap &&
              g_session.live_blocks.at(i).address < kHeap + kObjects * 4096;
  CHECK(blocks == recorded.size());
  CHECK(static_cast<double>(held_by(kOther, Space::heap)) ==
        doctest::Approx(kObjects * kBytes).epsilon(0.25));
  CHECK(pool_bytes() == 64 * kMiB);
  CHECK(recorder::is_left_to_heap(recorder::kLargeBytes));
}

TEST_CASE("a request whose sampled size would overflow is sampled, and so are later objects") {
  need(Mode::sampled);
  doubles::t_stack = 80;
  recorder::ThreadState& thread = *recorder::current_thread(kHook);
  const std::uint8_t shift = thread.object_shift;
  for (thread.object_shift = 0; thread.object_shift <= recorder::kFirstObjectShift;
       ++thread.object_shift) {
    for (unsigned log2 = 40; log2 < 63; ++log2) {  // some of the products have more than 64 bits
      CHECK_FALSE(recorder::passes_unrecorded(Source::pool, std::uint64_t{1} << log2));
      CHECK(recorder::object_weight(kHook, Source::pool, std::uint64_t{1} << log2) == 1);
    }
  }
  thread.object_shift = shift;
  std::uint64_t recorded = 0;
  for (std::uint64_t i = 0; i < 100'000; ++i) recorded += make(kPool + i * 64, 60) ? 1 : 0;
  CHECK(recorded > 0);
  for (std::uint64_t i = 0; i < 100'000; ++i)
    recorder::on_object_freed(kHook, Api::PyObject_Free, kPool + i * 64);
}

TEST_CASE("objects that the pool passes on to malloc count once, as the heap's") {
  need(Mode::sampled);
  doubles::t_stack = 79;
  constexpr std::uint64_t kHeap = 0x5600'0000'0000, kBytes = 72, kObjects = 1'000'000;
  for (std::uint64_t i = 0; i < kObjects; ++i) {
    if (!recorder::passes_unrecorded(Source::pool, kBytes))
      recorder::object_weight(kHook, Source::pool, kBytes);
    allocate(kHeap + i * 96, kBytes);
  }
  CHECK(held_by(79, Space::python) == 0);
  CHECK(static_cast<double>(held_by(79, Space::heap)) ==
        doctest::Approx(kObjects * kBytes).epsilon(0.4));  // some 150 samples
}

TEST_CASE("a forked child has its parent's objects by the parent's stacks, until it frees them") {
  need(Mode::sampled);
  constexpr std::uint32_t kParent = 81;
  constexpr std::uint64_t kArena = kPool + (std::uint64_t{1} << 32), kObjects = 200'000;
  doubles::t_stack = kParent;
  recorder::announce_arena(32 * kMiB);
  recorder::on_map(kHook, {Api::mmap, kArena, 32 * kMiB, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS, false});
  std::vector<std::uint64_t> recorded;
  for (std::uint64_t i = 0; i < kObjects; ++i)
    if (make(kArena + i * 64, 60)) recorded.push_back(kArena + i * 64);
  const std::uint64_t held = held_by(kParent, Space::python);
  const std::int64_t mapped = totals(Space::map).live_bytes;
  REQUIRE(held > 2 * kMiB);  // an estimate of 11.4, of some dozens of samples

  for (const Way way : {Way::announced, Way::raw_clone}) {
    CHECK(in_child(way, [&]() -> const char* {
            const auto release_objects = [&](std::size_t from, std::size_t to) {
              for (std::size_t i = from; i < to; ++i)
                if (recorder::is_recorded_object(reinterpret_cast<void*>(recorded[i])))
                  recorder::on_object_freed(kHook, Api::PyObject_Free, recorded[i]);
            };
            // A raw clone is noticed at its first event of the heap.
            allocate(0x3000'0000, 1000);
            EXPECT(!g_session.active());
            release_objects(0, recorded.size() / 2);
            doubles::t_stack = 82;
            allocate(0x4000'0000, 2 * kMiB);
            EXPECT(g_session.active());
            const std::uint64_t left = inherited_by(Space::python);
            // Half of the samples: not of the bytes, because later ones represent more.
            EXPECT(left > held / 100 && left < held - held / 100);
            EXPECT(pool_bytes() + left <= static_cast<std::uint64_t>(mapped));
            const std::uint64_t pool = pool_bytes();
            release_objects(recorded.size() / 2, recorded.size());
            EXPECT(inherited_by(Space::python) == 0);
            EXPECT(pool_bytes() == pool + left);
            return nullptr;
          }) == "");
  }
  CHECK(held_by(kParent, Space::python) == held);
}

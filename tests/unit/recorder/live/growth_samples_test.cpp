// Who gets what of it, when reservations have grown.
#include "recorder/live/growers.h"

#include <doctest/doctest.h>

#include <map>
#include <vector>

#include "recorder/live/range_table.h"
#include "recorder/session/writer.h"

using namespace oomrec;
using namespace oomrec::live;
using session::g_session;

namespace {

const InHook kHook = OutsideHooks::in_hook();
constexpr std::uint64_t kMiB = 1 << 20, kStart = 0x7000'0000'0000, kEnd = kStart + 1024 * kMiB;

std::vector<std::pair<std::uint32_t, std::uint64_t>> mib_of(const GrowthSamples& samples) {
  std::vector<std::pair<std::uint32_t, std::uint64_t>> out;
  for (const auto& [grower, bytes] : samples.all()) out.emplace_back(grower, bytes / kMiB);
  return out;
}
using Expected = std::vector<std::pair<std::uint32_t, std::uint64_t>>;

std::int64_t once(std::int64_t resident, std::int64_t live) {
  return Unexplained{}.next(resident, live, 1'000'000'000);
}

struct Reservation {
  HolderTable holders;
  RangeTable table{holders};
  std::uint32_t reserving, of_a, of_b, of_c;

  Reservation() {
    session::Settings settings;
    settings.session_directory = "/tmp";
    if (!g_session.active()) {
      REQUIRE(g_session.create(kHook, settings));
      g_session.remove_file(kHook);
    }
    static std::uint32_t node = 0;  // each test has holders of its own
    for (std::uint32_t* const holder : {&reserving, &of_a, &of_b, &of_c})
      *holder = holders.find_or_add(kHook, ++node, Space::map, Api::mmap, 0);
    table.reserve(kHook, kStart, kEnd - kStart, RangeKind::reservation, reserving, 0);
  }
  void look(std::uint64_t touched_mib, std::vector<Growers::Part> sampled,
            std::uint32_t running = 0) {
    table.set_touched(kHook, kStart, kEnd, touched_mib * kMiB, {sampled, running, 1});
  }
  std::uint64_t mib(std::uint32_t holder) const { return full_holder(holder).live_bytes / kMiB; }
};

}  // namespace

TEST_CASE("growth that allocations explain is nobody's") {
  CHECK(once(10, 0) == 10);
  CHECK(once(10, 10) == 0);
  CHECK(once(10, 30) == 0);
  CHECK(once(30, 10) == 20);
  CHECK(once(0, -30) == 0);  // the allocator keeps the pages
  CHECK(once(-30, -30) == 0);
  CHECK(once(-30, 0) == -30);
  CHECK(once(-30, -10) == -20);
  CHECK(once(-30, 10) == -30);
  CHECK(once(10, -30) == 10);
}

TEST_CASE("what was obtained explains growth for a moment, and once") {
  constexpr std::uint64_t kMs = 1'000'000;
  Unexplained unexplained;
  std::uint64_t now = 1000 * kMs;
  CHECK(unexplained.next(0, 100, now) == 0);
  CHECK(unexplained.next(60, 0, now += 10 * kMs) == 0);
  CHECK(unexplained.next(60, 0, now += 10 * kMs) == 20);
  CHECK(unexplained.next(5, 0, now += 10 * kMs) == 5);
  CHECK(unexplained.next(0, 100, now += 10 * kMs) == 0);
  CHECK(unexplained.next(0, -70, now += 10 * kMs) == 0);  // freed again
  CHECK(unexplained.next(50, 0, now += 10 * kMs) == 20);
  CHECK(unexplained.next(0, 100, now += 10 * kMs) == 0);  // a buffer that stays unused
  CHECK(unexplained.next(50, 0, now += 300 * kMs) == 50);
}

TEST_CASE("samples of one stack are a sum, and what was given back is of the latest") {
  GrowthSamples samples;
  samples.add(1, 50 * kMiB);
  samples.add(2, 20 * kMiB);
  samples.add(3, 5 * kMiB);
  samples.add(2, 10 * kMiB);
  CHECK(mib_of(samples) == Expected{{1, 50}, {3, 5}, {2, 30}});
  samples.shrink(32 * kMiB);
  CHECK(mib_of(samples) == Expected{{1, 50}, {3, 3}});
  samples.shrink(1000 * kMiB);
  CHECK(samples.all().empty());
  samples.add(4, kMiB);
  samples.clear();
  CHECK(samples.all().empty());
}

TEST_CASE("more stacks than there is room for: the smallest is dropped") {
  GrowthSamples samples;
  for (std::uint32_t node = 1; node <= GrowthSamples::kMost; ++node)
    samples.add(node, (node == 7 ? 1 : node + 1) * kMiB);
  samples.add(1000, 9 * kMiB);
  CHECK(samples.all().size() == GrowthSamples::kMost);
  for (const GrowthSamples::Sample& one : samples.all()) CHECK(one.grower != 7);
  CHECK(samples.all().back().grower == 1000);
}

TEST_CASE("what a look finds is divided in proportion") {
  Reservation r;
  r.look(10, {}, r.of_a);  // of the first look the stack that looks is no evidence
  CHECK(r.mib(r.reserving) == 10);
  r.look(110, {{r.of_a, 60}, {r.of_b, 20}, {r.of_c, 20}}, r.of_c);
  CHECK(r.mib(r.of_a) == 60);
  CHECK(r.mib(r.of_b) == 20);
  CHECK(r.mib(r.of_c) == 20);
  CHECK(r.mib(r.reserving) == 10);
  r.look(140, {}, r.of_b);  // without samples it is
  CHECK(r.mib(r.of_b) == 50);
  r.look(150, {{r.reserving, 1}}, r.of_b);
  CHECK(r.mib(r.reserving) == 20);
  CHECK(r.mib(r.of_b) == 50);
}

TEST_CASE("what the first look finds was sampled, too") {
  Reservation r;
  r.look(100, {{r.of_a, 3}, {r.of_b, 1}});
  CHECK(r.mib(r.of_a) == 75);
  CHECK(r.mib(r.of_b) == 25);
  CHECK(r.mib(r.reserving) == 0);
}

TEST_CASE("a reservation that is full at the first look was made for what fills it") {
  {
    Reservation r;
    r.look(1000, {{r.of_a, 1000}});
    CHECK(r.mib(r.reserving) == 1000);
    r.look(1024, {{r.of_a, 24}});
    CHECK(r.mib(r.of_a) == 24);
  }
  {
    Reservation r;  // an arena, if ever so much in use, or that was filled later
    r.look(900, {{r.of_a, 900}});
    CHECK(r.mib(r.of_a) == 900);
    r.look(1024, {{r.of_b, 1}});
    CHECK(r.mib(r.of_b) == 124);
    CHECK(r.mib(r.reserving) == 0);
  }
}

TEST_CASE("no byte is lost, and what is given back is of who grew last") {
  Reservation r;
  r.look(0, {});
  r.table.set_touched(kHook, kStart, kEnd, kMiB + 1,
                      {std::vector<Growers::Part>{{r.of_a, 1}, {r.of_b, 1}, {r.of_c, 1}}, 0, 1});
  CHECK(full_holder(r.of_a).live_bytes + full_holder(r.of_b).live_bytes +
            full_holder(r.of_c).live_bytes ==
        kMiB + 1);
  r.look(0, {});
  r.look(30, {{r.of_a, 1}, {r.of_b, 1}, {r.of_c, 1}});
  r.look(40, {{r.of_a, 1}});  // in the same second
  r.look(15, {});
  CHECK(r.mib(r.of_a) == 0);
  CHECK(r.mib(r.of_b) == 10);
  CHECK(r.mib(r.of_c) == 5);
}

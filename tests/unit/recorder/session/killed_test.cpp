// A writer killed at random instants leaves a readable session.
//
// A child appends to every table and to its ring as fast as it can, and is SIGKILLed after a random
// processor time. Every entry can be recomputed from its number, so torn ones are detected.
#include <doctest/doctest.h>

#include <sched.h>
#include <time.h>

#include <chrono>
#include <random>

#include "common/session/brief_holder.h"
#include "tests/unit/common/session/exercise.h"
#include "tests/unit/recorder/session/fixtures.h"
#include "tests/unit/sanitized.h"

using namespace oomrec;
using namespace oomrec::session;

namespace {

u64 secret_of(u64 number) { return number * 0x9E37'79B9'7F4A'7C15 | 1; }

// Writes until it is killed.
[[noreturn]] void write_for_ever(Session& session) {
  const u32 lane_number = session.acquire_lane(kHook, getpid(), 1);
  Lane& lane = session.lanes.at(lane_number);
  RingWriter ring;
  ring.use(lane, session.ring(lane_number));
  u32 index = 0, extra_lane = 0;
  // Entries after a table is full would get other numbers, so it then waits to be killed.
  const auto need = [](bool entered) {
    while (!entered) sched_yield();
  };
  for (u64 number = 1;; ++number) {
    const u64 secret = secret_of(number);
    const StringId text = session.add_string(kHook, {reinterpret_cast<const char*>(&secret), 8});
    need(text != 0);
    need(tests::append_node(session, index, static_cast<u32>(number - 1), secret));
    need(session.full_holders.append(kHook, index,
                                     [&](Holder& holder) { holder.live_bytes = secret; }));
    need(session.holders.append(kHook, index, [&](HolderEntry& holder) {
      holder.node = static_cast<u32>(number);
      holder.figures = kFullHolder | number;
    }));
    need(session.live_blocks.append(kHook, index, [&](LiveBlock& block) {
      block.bytes = secret & (~u64{0} >> 16);
      block.gap_bytes = static_cast<std::uint16_t>(secret >> 48);
      block.address.store(secret, std::memory_order_release);
    }));
    need(session.live_ranges.append(kHook, index, [&](LiveRange& range) {
      range.bytes = secret;
      range.start.store(secret, std::memory_order_release);
    }));
    need(session.threads.append(kHook, index, [&](Thread& thread) {
      thread.first_seen_ns = secret;
      thread.tid = 1;
    }));
    need(session.failures.append(kHook, index, [&](Failure& failure) { failure.bytes = secret; }));
    need(session.modules.append(kHook, index, [&](Module& module) {
      module.base = secret;
      module.path = text;
    }));
    need(session.codes.append(kHook, index, [&](Code& code) { code.file = text; }));
    need(session.points.append(kHook, index, [&](Point& point) {
      point.time_ns = number;
      point.rss_bytes = secret;
    }));
    if (number % 64 == 0) {
      session.release_lane(kHook, extra_lane);
      extra_lane = session.acquire_lane(kHook, 1, 1);
    }

    const u64 event = lane.ring_next.load(std::memory_order_relaxed) + number % 3;
    ring.append(static_cast<u32>(number / 5), 1, EventKind::allocate, Api::malloc, event,
                secret_of(event) % kSizeElsewhere, 0);
  }
}

// Checks entries [1, count) of a table against the values derived from `secret`.
template <class T, class Secret>
u64 wrong_entries(const View& view, TableId table, Secret secret) {
  u64 wrong = 0;
  T entry{};
  for (u64 index = 1; index < view.count(table); ++index) {
    wrong += !view.read(table, index, entry) || secret(entry) != secret_of(index);
  }
  return wrong;
}

u64 wrong_in(const View& view) {
  u64 wrong = 0;
  const auto text = [&](StringId id) {
    u64 value = 0;
    const std::string_view bytes = view.string(id);
    if (bytes.size() == sizeof(value)) std::memcpy(&value, bytes.data(), sizeof(value));
    return value;
  };
  wrong += wrong_entries<Node>(view, TableId::nodes, [](const Node& e) { return e.frame; });
  wrong += wrong_entries<Holder>(view, TableId::holders,
                                 [](const Holder& e) { return e.live_bytes.load(); });
  wrong += wrong_entries<LiveBlock>(view, TableId::live_blocks, [](const LiveBlock& e) {
    return e.bytes | u64{e.gap_bytes} << 48;
  });
  wrong += wrong_entries<LiveRange>(view, TableId::live_ranges,
                                    [](const LiveRange& e) { return e.bytes; });
  wrong += wrong_entries<Thread>(view, TableId::threads,
                                 [](const Thread& e) { return e.first_seen_ns; });
  wrong +=
      wrong_entries<Failure>(view, TableId::failures, [](const Failure& e) { return e.bytes; });
  wrong +=
      wrong_entries<Module>(view, TableId::modules, [&](const Module& e) { return text(e.path); });
  wrong += wrong_entries<Code>(view, TableId::codes, [&](const Code& e) { return text(e.file); });
  wrong += wrong_entries<Point>(view, TableId::points, [](const Point& e) { return e.rss_bytes; });
  return wrong;
}

// Incomplete events of the first lane's ring, from the first one that certainly has its stamp.
// `wrong` counts events with wrong contents.
u64 torn_events(const View& view, u64& wrong) {
  Lane lane{};
  Event event{};
  if (!view.read(TableId::lanes, 1, lane)) return 0;
  u64 torn = 0;
  const u64 next = lane.ring_next, slots = lane.ring_slots;
  const u64 oldest = next - std::min(next, slots);
  const u64 first = (oldest + kStampEvents - 1) / kStampEvents * kStampEvents;
  for (u64 number = first; number < next; ++number) {
    if (!view.event(lane, number, event)) {
      ++torn;
      continue;
    }
    wrong += !event.is_stamp() && event.bytes != secret_of(event.address) % kSizeElsewhere;
  }
  return torn;
}

// Waits until the process has run for so long from now on: by the clock, it may not have run at
// all.
void wait_for_cpu(pid_t pid, std::chrono::nanoseconds time) {
  clockid_t clock;
  REQUIRE(clock_getcpuclockid(pid, &clock) == 0);
  const auto now = [&] {
    timespec at{};
    clock_gettime(clock, &at);
    return std::chrono::seconds{at.tv_sec} + std::chrono::nanoseconds{at.tv_nsec};
  };
  const auto begin = now();
  while (now() - begin < time) usleep(100);
}

}  // namespace

TEST_CASE("a writer killed at any instant leaves only complete entries") {
  constexpr unsigned kKills = rounds(200);
  const Scratch scratch;
  std::mt19937 random{20261121};
  u64 wrong = 0, entries = 0, events_missing = 0, unreadable = 0, alive = 0, sum = 0;
  unsigned kills = 0;
  for (; kills < kKills; ++kills) {
    Signal ready;
    Child child{[&] {
      Settings settings;
      settings.budget_bytes = 2 << 20;
      const auto session = session_in(scratch.path(), settings);
      ready.give();
      write_for_ever(*session);
    }};
    ready.take();
    wait_for_cpu(child.pid(), std::chrono::microseconds{random() % 8000});
    child.kill();

    const std::string path = files_in(scratch.own()).at(0);
    const Recording recording{path};
    const View view = recording.view();
    unreadable += view.problem() != Problem::none;
    alive += life_of(view) == Life::alive;
    wrong += wrong_in(view);
    entries += view.count(TableId::nodes);
    events_missing += torn_events(view, wrong);
    sum += exercise(view);
    std::filesystem::remove(path);
  }
  MESSAGE(kKills, " kills, ", entries, " stacks, ", events_missing, " torn events");
  CHECK(kills == kKills);
  CHECK(unreadable == 0);
  CHECK(alive == 0);
  CHECK(wrong == 0);
  CHECK(entries > 100 * kKills);
  CHECK(events_missing <= kKills);  // at most the one being written
  CHECK(sum != 0);
}

// The recorder's history: checkpoints of the largest holders, temporary blocks, marks.
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "recorder/events/marks.h"
#include "recorder/state/state.h"
#include "recorder/tick/tick.h"
#include "tests/unit/recorder/running.h"

using namespace oomrec;
using namespace oomrec::running;
using doubles::t_stack;
using session::Checkpoint;
using session::CheckpointRow;
using session::g_session;

namespace {

constexpr std::uint64_t kMillisecond = 1'000'000;

// A time on the session's clock beyond the recorder's own ticks.
std::uint64_t after(std::uint64_t milliseconds) {
  constexpr std::uint64_t kDay = 86'400'000;
  return g_session.header().start_monotonic_ns + (kDay + milliseconds) * kMillisecond;
}
std::uint32_t milliseconds_of(std::uint64_t time_ns) {
  return static_cast<std::uint32_t>((time_ns - g_session.header().start_monotonic_ns) /
                                    kMillisecond);
}

struct Found {
  std::uint64_t time_ns;
  std::vector<CheckpointRow> rows;
};

// Complete checkpoints in order of time, without those of the recorder's own ticks.
std::vector<Found> checkpoints() {
  const session::View view = g_session.view();
  std::vector<Found> found;
  Checkpoint entry{};
  for (std::uint64_t i = 1; i < view.count(session::TableId::checkpoints); ++i) {
    REQUIRE(view.read(session::TableId::checkpoints, i, entry));
    if (entry.time_ns < after(0)) continue;
    Found one{entry.time_ns, {}};
    for (std::uint32_t row = 0; row < entry.rows; ++row) {
      one.rows.emplace_back();
      REQUIRE(view.read(session::TableId::checkpoint_rows, entry.first_row + row, one.rows.back()));
    }
    found.push_back(one);
  }
  std::sort(found.begin(), found.end(),
            [](const Found& a, const Found& b) { return a.time_ns < b.time_ns; });
  return found;
}

std::uint64_t temporary_of(std::uint32_t stack, Space space = Space::heap) {
  return holder_of(stack, space)->temporary_count;
}

}  // namespace

TEST_CASE("checkpoints have the largest holders and their times") {
  need(Mode::exact);
  recorder::reset_checkpoints_after_fork(kHook);
  // A growing list, and one that is discarded whenever it is full.
  const std::uint64_t large = 64 * 1024;
  for (std::uint32_t tick = 0; tick < 12; ++tick) {
    t_stack = 101;
    allocate(0x10'0000'0000 + tick * large, large);
    t_stack = 102;
    for (std::uint32_t i = 0; tick % 4 == 0 && tick != 0 && i < 4; ++i)
      release(0x20'0000'0000 + i * large, large);
    allocate(0x20'0000'0000 + tick % 4 * large, large);
    recorder::add_checkpoint(kHook, tick, after(tick * 100));
  }
  const std::uint32_t grows = number_of_holder(101, Space::heap);
  const std::uint32_t saws = number_of_holder(102, Space::heap);
  const std::vector<Found> found = checkpoints();
  REQUIRE(found.size() == 12);
  for (std::uint32_t tick = 0; tick < 12; ++tick) {
    CHECK(found[tick].time_ns == after(tick * 100));
    REQUIRE(found[tick].rows.size() == 2);
    for (const CheckpointRow& row : found[tick].rows) {
      CHECK(row.time_ms == milliseconds_of(after(tick * 100)));
      CHECK((row.holder == grows || row.holder == saws));
      CHECK(row.live_bytes == usable(large) * (row.holder == grows ? tick + 1 : tick % 4 + 1));
    }
  }
}

TEST_CASE("a long run keeps 256 checkpoints, and a small program's take little space") {
  need(Mode::exact);
  recorder::reset_checkpoints_after_fork(kHook);
  const std::uint32_t rows = g_session.checkpoint_rows.size();
  for (std::uint32_t tick = 12; tick < 5000; ++tick)
    recorder::add_checkpoint(kHook, tick, after(tick * 100));
  std::vector<Found> found = checkpoints();
  std::erase_if(found, [](const Found& one) { return one.time_ns < after(1200); });
  CHECK(found.size() == session::kCheckpoints);
  CHECK(found.back().time_ns > after(4950 * 100));
  for (const Found& one : found) {
    REQUIRE(one.rows.size() == 2);
    CHECK(one.rows[0].time_ms == milliseconds_of(one.time_ns));
  }
  CHECK(g_session.checkpoint_rows.size() == rows + session::kCheckpoints * 16);
}

TEST_CASE("a checkpoint that outgrows its slot gets more space") {
  need(Mode::exact);
  for (std::uint32_t i = 0; i < 300; ++i) {
    t_stack = 1000 + i;
    allocate(0x30'0000'0000 + i * 0x10000, 1000 + i);
  }
  for (std::uint32_t tick = 5000; tick < 8000; ++tick)
    recorder::add_checkpoint(kHook, tick, after(tick * 100));
  std::size_t large = 0;
  for (const Found& one : checkpoints()) {
    if (one.time_ns < after(5000 * 100)) continue;
    CHECK(one.rows.size() == session::kCheckpointRows);
    CHECK(one.rows.back().time_ms == milliseconds_of(one.time_ns));
    ++large;
  }
  CHECK(large > 50);
}

TEST_CASE("a block is temporary if its thread frees it before the next allocation") {
  need(Mode::exact);
  constexpr std::uint64_t kSmall = 0x4000'0000'0000, kOther = 0x4000'0001'0000;
  SUBCASE("at once") {
    t_stack = 201;
    for (int i = 0; i < 10; ++i) allocate(kSmall, 40), release(kSmall, 40);
    CHECK(temporary_of(201) == 10);
  }
  SUBCASE("after another") {
    t_stack = 202;
    allocate(kSmall, 40);
    allocate(kOther, 40);
    release(kSmall, 40);
    CHECK(temporary_of(202) == 0);
    release(kOther, 40);  // nothing was allocated in between
    CHECK(temporary_of(202) == 1);
  }
  SUBCASE("by another thread") {
    t_stack = 203;
    allocate(kSmall, 40);
    std::thread{[] { release(kSmall, 40); }}.join();
    CHECK(temporary_of(203) == 0);
  }
  SUBCASE("large blocks outside of the side table") {
    t_stack = 204;
    for (int i = 0; i < 3; ++i) allocate(kSmall, 1 << 20), release(kSmall, 1 << 20);
    CHECK(temporary_of(204) == 3);
  }
  SUBCASE("a tensor lies in a block of the heap: both are temporary") {
    t_stack = 205;
    allocate(kSmall, 500);
    allocate(live::torch_key(kSmall), 500, Space::torch);
    release(live::torch_key(kSmall), 500, Space::torch);
    release(kSmall, 500);
    CHECK(temporary_of(205, Space::torch) == 1);
    CHECK(temporary_of(205) == 1);
  }
  SUBCASE("published to the holder together with the sum") {
    t_stack = 206;
    allocate(kSmall, 40), release(kSmall, 40);
    CHECK(raw_holder_of(206, Space::heap).temporary_count == 0);
    // Another node with the same slot in the lane's sums.
    const std::uint32_t node = raw_holder_of(206, Space::heap).node;
    for (t_stack = 30'000; raw_holder_of(206, Space::heap).temporary_count == 0; ++t_stack) {
      allocate(kOther, 40), release(kOther, 40);
      REQUIRE(raw_holder_of(t_stack, Space::heap).node <= node + 1024);
    }
    CHECK(temporary_of(206) == 1);
  }
}

TEST_CASE("marks are kept in order, cut, and counted if there are too many") {
  need(Mode::exact);
  allocate(0x5000'0000'0000, 10);
  recorder::mark(kHook, "epoch 1");
  recorder::mark(kHook, std::string(5000, 'x'));
  const session::View view = g_session.view();
  session::Mark mark{};
  REQUIRE(view.read(session::TableId::marks, 1, mark));
  CHECK(view.string(mark.text) == "epoch 1");
  CHECK(mark.time_ns >= g_session.header().start_monotonic_ns);
  session::Thread thread{};
  REQUIRE(view.read(session::TableId::threads, mark.thread, thread));
  CHECK(thread.tid == recorder::g_state.pid);
  REQUIRE(view.read(session::TableId::marks, 2, mark));
  CHECK(view.string(mark.text) == std::string(256, 'x'));

  session::Lane lane{};
  REQUIRE(view.read(session::TableId::lanes, 1, lane));
  session::Event event{};
  REQUIRE(view.event(lane, lane.ring_next - 1, event));
  CHECK(event.kind == EventKind::mark);
  CHECK(event.api == Api::oomrec_mark);
  CHECK(event.address == 2);

  for (std::uint32_t i = 0; i < session::kMarks; ++i) recorder::mark(kHook, "more");
  CHECK(g_session.marks.size() == 1 + session::kMarks);
  CHECK(g_session.header().dropped_marks == 2);
}

// Switches to sampled mode.
TEST_CASE("nothing is temporary in sampled mode, where intermediate blocks are unknown") {
  need(Mode::exact);
  t_stack = 208;
  allocate(0x4000'0000'0000, 40);
  recorder::fall_back_to_sampling();
  release(0x4000'0000'0000, 40);
  CHECK(temporary_of(208) == 0);
}

// Measures the cost without asserting it; docs/overhead.md has the figures.
TEST_CASE("a checkpoint of hundreds of thousands of holders") {
  need(Mode::exact);
  std::vector<char> elsewhere(32 << 20);  // the program's work between two ticks
  std::uint32_t tick = 8000;
  for (const std::uint32_t count : {100'000u, 600'000u}) {
    while (g_session.holders.size() < count) {
      const std::uint32_t number = recorder::g_state.holders.find_or_add(
          kHook, 1'000'000 + g_session.holders.size(), Space::heap, Api::malloc, 0);
      recorder::g_state.holders.grow(kHook, number, number * 7919 % 1'000'003, 1);
    }
    std::vector<std::int64_t> cost_ns;
    for (int i = 0; i < 33; ++i) {
      for (std::size_t at = 0; at < elsewhere.size(); at += 64) ++elsewhere[at];
      const auto start = std::chrono::steady_clock::now();
      recorder::reset_checkpoints_after_fork(kHook);
      recorder::add_checkpoint(kHook, 0, after(++tick * 100));
      cost_ns.push_back((std::chrono::steady_clock::now() - start).count());
    }
    std::sort(cost_ns.begin(), cost_ns.end());
    MESSAGE(g_session.holders.size() << " holders: " << cost_ns[16] / 1000 << " µs in the middle, "
                                     << cost_ns[31] / 1000 << " µs at most but one");
  }
}

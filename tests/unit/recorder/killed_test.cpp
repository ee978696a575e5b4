// A process killed at any instant leaves complete checkpoints, except the one that was being
// written.
#include <doctest/doctest.h>

#include <random>

#include "recorder/recorder.h"
#include "recorder/state/state.h"
#include "recorder/tick/tick.h"
#include "tests/unit/recorder/session/fixtures.h"

using namespace oomrec;
using namespace oomrec::session;

namespace {

constexpr u32 kHolders = 40;
constexpr u64 kTick = 100;  // ms

// A holder's bytes at a tick.
u64 held_at(u32 holder, u64 tick) { return holder * 1'000'000 + tick; }

[[noreturn]] void write_for_ever(Signal& ready) {
  u32 holders[kHolders];
  for (u32 i = 0; i < kHolders; ++i) {
    holders[i] = recorder::g_state.holders.find_or_add(kHook, 1 + i, Space::heap, Api::malloc, 0);
    recorder::g_state.holders.grow(kHook, holders[i], held_at(holders[i], 0), 1);
  }
  ready.give();
  for (u32 tick = 0;; ++tick) {
    recorder::add_checkpoint(kHook, tick,
                             g_session.header().start_monotonic_ns + tick * kTick * 1'000'000);
    for (const u32 holder : holders) recorder::g_state.holders.grow(kHook, holder, 1, 1);
  }
}

struct Count {
  unsigned whole = 0, torn = 0, wrong = 0;
};

void count_checkpoints(const View& view, Count& count) {
  Checkpoint entry{};
  CheckpointRow row{};
  for (u64 i = 1; i < view.count(TableId::checkpoints); ++i) {
    REQUIRE(view.read(TableId::checkpoints, i, entry));
    if (entry.time_ns == 0) {
      ++count.torn;
      continue;
    }
    ++count.whole;
    const u64 time_ms = (entry.time_ns - view.header().start_monotonic_ns) / 1'000'000;
    count.wrong += entry.rows != kHolders;
    for (u32 at = 0; at < entry.rows; ++at) {
      count.wrong += !view.read(TableId::checkpoint_rows, entry.first_row + at, row) ||
                     row.time_ms != time_ms ||
                     row.live_bytes != held_at(row.holder, time_ms / kTick);
    }
  }
}

}  // namespace

TEST_CASE("checkpoints of a process that is killed at any instant are whole") {
  constexpr unsigned kKills = 60;
  const Scratch scratch;
  std::mt19937 random{20261122};
  Count count;
  for (unsigned round = 0; round < kKills; ++round) {
    Signal ready;
    Child child{[&] {
      Options options;
      options.mode = Mode::exact;
      options.session_dir = scratch.path();
      options.quiet = true;
      if (!recorder::start(options)) _exit(1);
      write_for_ever(ready);
    }};
    ready.take();
    usleep(static_cast<useconds_t>(random() % 6000));
    child.kill();
    const std::string path = files_in(scratch.own()).at(0);
    count_checkpoints(Recording{path}.view(), count);
    std::filesystem::remove(path);
  }
  CHECK(count.wrong == 0);
  CHECK(count.torn <= kKills);
  CHECK(count.whole > 20 * kKills);
}

// Stacks that nothing needs any more are forgotten in sampled mode, too.
#include "recorder/forget/thinning.h"
#include "recorder/state/state.h"
#include "tests/unit/recorder/forget/churn.h"

using namespace oomrec;
using namespace oomrec::running;

namespace {

// Recorded for certain, as one block each.
std::uint64_t large_bytes(std::uint32_t place) { return 64 * 1024 + place * 8; }
// A sample of them is recorded.
std::uint64_t small_bytes(std::uint32_t place) { return 2000 + place * 8; }

}  // namespace

TEST_CASE("a simulated month: the recording does not grow, and every live block has its stack") {
  need_to_forget(Mode::sampled);
  check_simulated_month(scaled(1'200'000), large_bytes);
}

TEST_CASE("a stack with a live block is never forgotten") {
  need_to_forget(Mode::sampled);
  check_old_blocks_stay(scaled(200'000), large_bytes);
}

TEST_CASE("what samples of forgotten stacks stand for still counts") {
  need_to_forget(Mode::sampled);
  const std::uint64_t before = forgotten_stacks();
  const EverAllocated ever = ever_allocated();
  const auto total = totals(Space::heap);
  {
    Churn churn{0x1400'0000, 500, small_bytes};
    churn.replace(2'000'000);
  }
  CHECK(forgotten_stacks() - before > 7'500);
  const auto bytes =
      static_cast<double>(totals(Space::heap).allocated_bytes - total.allocated_bytes);
  const auto estimated = static_cast<double>(ever_allocated().bytes - ever.bytes);
  CHECK(estimated / bytes == doctest::Approx(1).epsilon(0.03));
  CHECK(session::g_session.header().dropped_events == 0);
}

namespace {

struct Live {
  double bytes = 0;  // as estimated
  std::uint64_t samples = 0;
};
Live live_of_heap() {
  Live live;
  for (std::uint32_t i = 1; i < session::g_session.live_blocks.size(); ++i) {
    const session::LiveBlock& block = session::g_session.live_blocks.at(i);
    if (block.address == 0) continue;
    live.bytes += static_cast<double>(block.bytes * block.weight);
    ++live.samples;
  }
  return live;
}

void thin() {
  recorder::Thinning thinning;
  thinning.begin(false);
  while (!thinning.next(kHook)) {
  }
  CHECK(thinning.has_thinned());
}

}  // namespace

TEST_CASE("thinned samples stand for as much, and large ones stay") {
  need_to_forget(Mode::sampled);
  constexpr std::uint64_t kFirst = 0x20'0000'0000, kBlocks = 3'000'000, kLarge = 0x30'0000'0000;
  const Live none = live_of_heap();
  for (std::uint64_t i = 0; i < kBlocks; ++i) {
    if (i % 100 == 0) doubles::t_stack = static_cast<std::uint32_t>(1 + i / 100 % 50);
    allocate(kFirst + i * 4096, 1000 + i % 3000);
  }
  constexpr std::uint64_t kLargeBytes = 100 * kMiB;
  for (std::uint64_t i = 0; i < 4; ++i) allocate(kLarge + i * kLargeBytes * 2, kLargeBytes);
  Live before = live_of_heap();
  const std::uint64_t interval = recorder::g_state.interval_bytes;
  REQUIRE(before.samples - none.samples > 10'000);
  for (int i = 0; i < 2; ++i) {
    thin();
    const Live after = live_of_heap();
    CHECK(after.samples < before.samples * 3 / 4);
    CHECK(after.samples > before.samples / 8);
    // Five standard errors, each at most 1 / sqrt(samples): 8 % of 3,600 samples, 17 % of 820.
    CHECK(std::abs(after.bytes / before.bytes - 1) <
          5 / std::sqrt(static_cast<double>(after.samples)));
    CHECK(holders_agree());
    before = after;
  }
  CHECK(recorder::g_state.interval_bytes > interval);
  CHECK(session::g_session.header().interval_bytes == recorder::g_state.interval_bytes);
  for (std::uint64_t i = 0; i < 4; ++i)
    CHECK(release(kLarge + i * kLargeBytes * 2, kLargeBytes).weight == 1);
  for (std::uint64_t i = 0; i < kBlocks; ++i) release(kFirst + i * 4096, 1000 + i % 3000);
  CHECK(live_of_heap().samples == none.samples);
  CHECK(holders_agree());
}

TEST_CASE("sampling is coarser only while there is no memory") {
  need_to_forget(Mode::sampled);
  const auto& interval = recorder::g_state.interval_bytes;
  const std::uint64_t finest = recorder::g_state.finest_interval_bytes;
  recorder::sample_at_least(16 * finest);
  const std::uint64_t coarse = interval;
  REQUIRE(coarse >= 16 * finest);
  recorder::sample_coarser(2 * coarse - 1);  // what there is would have too few samples
  CHECK(interval == coarse);
  recorder::sample_coarser(2 * coarse);
  CHECK(interval == 2 * coarse);
  {
    Churn churn{0x1500'0000, 500, [](std::uint32_t) { return 32 * kMiB; }};
    churn.replace(scaled(400'000));
  }
  CHECK(interval == finest);
  CHECK(session::g_session.header().interval_bytes == finest);
  CHECK(recorder::g_state.least_sample_bytes <= finest);
}

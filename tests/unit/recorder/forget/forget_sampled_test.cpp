// Stacks that nothing needs any more are forgotten in sampled mode, too.
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
  need(Mode::sampled);
  check_simulated_month(1'200'000, large_bytes);
}

TEST_CASE("a stack with a live block is never forgotten") {
  need(Mode::sampled);
  check_old_blocks_stay(200'000, large_bytes);
}

TEST_CASE("what samples of forgotten stacks stand for still counts") {
  need(Mode::sampled);
  const std::uint64_t before = forgotten_stacks();
  const EverAllocated ever = ever_allocated();
  const auto total = totals(Space::heap);
  {
    Churn churn{0x1400'0000, 500, small_bytes};
    churn.replace(8'000'000);
  }
  CHECK(forgotten_stacks() - before > 30'000);
  const auto bytes =
      static_cast<double>(totals(Space::heap).allocated_bytes - total.allocated_bytes);
  const auto estimated = static_cast<double>(ever_allocated().bytes - ever.bytes);
  CHECK(estimated / bytes == doctest::Approx(1).epsilon(0.03));
  CHECK(session::g_session.header().dropped_events == 0);
}

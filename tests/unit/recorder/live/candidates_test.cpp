// The largest holders without a full scan, compared with a full scan.
#include "recorder/live/candidates.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <thread>
#include <vector>

#include "recorder/live/holder_table.h"
#include "recorder/session/writer.h"

using namespace oomrec;
using namespace oomrec::live;
using session::g_session;

namespace {

const InHook kHook = OutsideHooks::in_hook();
constinit HolderTable g_holders;

std::uint32_t holder(std::uint32_t node, Space space = Space::heap) {
  return g_holders.find_or_add(kHook, node, space, Api::malloc, 0);
}

// Makes `count` empty holders and returns the first one's number. Removes all earlier ones.
std::uint32_t make_holders(std::uint32_t count) {
  if (!g_session.active()) {
    session::Settings settings;
    settings.session_directory = "/tmp";
    settings.budget_bytes = std::uint64_t{64} << 20;
    REQUIRE(g_session.create(kHook, settings));
    g_session.remove_file(kHook);
  }
  for (std::uint32_t i = 1; i < g_session.holders.size(); ++i) {
    full_holder(i).live_bytes = 0;
    full_holder(i).flags = 0;
  }
  g_holders.candidates().reset(kHook);
  const std::uint32_t first = g_session.holders.size();
  for (std::uint32_t i = 0; i < count; ++i) REQUIRE(holder(first + i) == first + i);
  return first;
}

std::uint32_t below(std::uint32_t bound, std::mt19937& random) {
  return static_cast<std::uint32_t>(random() % bound);
}

using Sizes = std::vector<std::int64_t>;

Sizes largest_now() {
  LargeHolder room[session::kCheckpointRows];
  std::span<LargeHolder> rows{room};
  REQUIRE(g_holders.candidates().largest(kHook, rows));
  Sizes sizes;
  for (const LargeHolder& row : rows) {
    CHECK(live_bytes_of(row.holder) == row.live_bytes);
    sizes.push_back(row.live_bytes);
  }
  return sizes;
}

Sizes largest_of_all() {
  Sizes sizes;
  for (std::uint32_t i = 1; i < g_session.holders.size(); ++i) {
    const auto live = live_bytes_of(i);
    const auto space = static_cast<Space>(g_session.holders.at(i).space);
    if (live > 0 && !is_address_space(space)) sizes.push_back(live);
  }
  std::sort(sizes.begin(), sizes.end(), std::greater<>{});
  sizes.resize(std::min<std::size_t>(sizes.size(), session::kCheckpointRows));
  return sizes;
}

// Enough ticks to scan each holder.
void look_at_all() {
  for (std::uint32_t scanned = 0; scanned < g_session.holders.size();
       scanned += Candidates::kScanned)
    g_holders.candidates().scan_next(kHook);
}

}  // namespace

TEST_CASE("a few holders are all candidates, the largest first") {
  const std::uint32_t first = make_holders(3);
  g_holders.grow(kHook, first, 10, 1);
  g_holders.grow(kHook, first + 1, 30, 1);
  g_holders.grow(kHook, first + 2, 20, 1);
  CHECK(largest_now() == Sizes{30, 20, 10});
  g_holders.shrink(kHook, first + 1, 30, 1);
  CHECK(largest_now() == Sizes{20, 10});
  g_holders.restore(kHook, first + 1, 30, 1);
  CHECK(largest_now() == Sizes{30, 20, 10});
}

TEST_CASE("a device's address space has no holder") {
  const std::uint32_t first = make_holders(1);
  g_holders.grow(kHook, holder(first, Space::cuda_va), 1000, 1);
  g_holders.grow(kHook, holder(first, Space::torch), 500, 1);
  look_at_all();
  CHECK(largest_now() == Sizes{500});
}

TEST_CASE("the largest of thousands of growing holders are known at any moment") {
  constexpr std::uint32_t kHolders = 20'000;
  const std::uint32_t first = make_holders(kHolders);
  std::mt19937 random(5);
  for (int round = 0; round < 20; ++round) {
    for (int i = 0; i < 5000; ++i)
      g_holders.grow(kHook, first + below(kHolders, random), 1 + below(10'000, random), 1);
    CHECK(largest_now() == largest_of_all());
  }
}

TEST_CASE("a holder that became large because others shrank is found within one scan") {
  constexpr std::uint32_t kHolders = 5000;
  const std::uint32_t first = make_holders(kHolders);
  for (std::uint32_t i = 0; i < kHolders; ++i) g_holders.grow(kHook, first + i, 1000 + i, 1);
  CHECK(largest_now() == largest_of_all());
  for (std::uint32_t i = 2000; i < kHolders; ++i) g_holders.shrink(kHook, first + i, 1000 + i, 1);
  largest_now();  // all candidates have shrunk
  look_at_all();
  CHECK(largest_of_all().front() == 2999);
  CHECK(largest_now() == largest_of_all());
}

TEST_CASE("a storm of growing, shrinking and new holders") {
  constexpr std::uint32_t kHolders = 3000;
  const std::uint32_t first = make_holders(kHolders);
  std::mt19937 random(7);
  std::vector<std::uint64_t> held(kHolders);
  for (int round = 0; round < 20; ++round) {
    for (int i = 0; i < 5000; ++i) {
      const std::uint32_t at = below(kHolders, random);
      if (random() % 3 == 0) {
        g_holders.shrink(kHook, first + at, held[at], 1);
        held[at] = 0;
      } else {
        const std::uint64_t bytes = 1 + random() % 100'000;
        g_holders.grow(kHook, first + at, bytes, 1);
        held[at] += bytes;
      }
      if (i % 50 == 0)
        g_holders.grow(kHook, holder(g_session.holders.size()), random() % 500'000, 1);
    }
    largest_now();
    look_at_all();
    CHECK(largest_now() == largest_of_all());
  }
}

TEST_CASE("holders of equal size do not cause endless scans") {
  constexpr std::uint32_t kHolders = 2000;
  const std::uint32_t first = make_holders(kHolders);
  for (std::uint32_t i = 0; i < kHolders; ++i) g_holders.grow(kHook, first + i, 100, 1);
  CHECK(largest_now() == Sizes(session::kCheckpointRows, 100));
  g_holders.grow(kHook, first + kHolders - 1, 1, 1);
  CHECK(largest_now().front() == 101);
}

TEST_CASE("four threads grow and shrink holders while another reads") {
  constexpr std::uint32_t kHolders = 4000;
  const std::uint32_t first = make_holders(kHolders);
  std::atomic<int> at_work{4};
  std::vector<std::thread> threads;
  for (std::uint32_t id = 0; id < 4; ++id) {
    threads.emplace_back([&, id] {
      std::mt19937 random(id);
      for (int i = 0; i < 20'000; ++i) {
        const std::uint32_t number = first + below(kHolders, random);
        const std::uint64_t bytes = random() % 1000;
        g_holders.grow(kHook, number, bytes + 100, 1);
        g_holders.shrink(kHook, number, bytes, 1);
      }
      --at_work;
    });
  }
  LargeHolder room[session::kCheckpointRows];
  while (at_work != 0) {
    std::span<LargeHolder> rows{room};
    g_holders.candidates().scan_next(kHook);
    if (g_holders.candidates().largest(kHook, rows)) {
      const auto larger = [](const auto& a, const auto& b) { return a.live_bytes > b.live_bytes; };
      CHECK(std::is_sorted(rows.begin(), rows.end(), larger));
    }
  }
  for (std::thread& thread : threads) thread.join();
  largest_now();
  look_at_all();
  CHECK(largest_now() == largest_of_all());
}

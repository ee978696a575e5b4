// The range table compared with a map of pages after each of many random operations.
#include "recorder/live/range_table.h"
#include "common/machine/page.h"

#include <doctest/doctest.h>
#include <sys/mman.h>

#include <map>
#include <random>
#include <vector>

#include "recorder/session/writer.h"
#include "tests/unit/sanitized.h"

using namespace oomrec;
using namespace oomrec::live;
using session::g_session;

namespace {

const std::uint64_t kPageBytes = machine::page_bytes();

const InHook kHook = OutsideHooks::in_hook();

constexpr std::uint64_t kBase = 0x7000'0000'0000;
constexpr std::uint64_t kPages = 96;  // few, so that ranges touch

struct Page {
  RangeKind kind = RangeKind::none;
  bool anonymous = false;
  std::uint32_t holder = 0;
  bool usable = false;
  bool operator==(const Page&) const = default;
};

HolderTable g_holders;

struct Fixture {
  RangeTable table{g_holders};
  std::vector<Page> pages = std::vector<Page>(kPages);
  std::int64_t bytes = 0, count = 0, reserved = 0;

  Fixture() {
    if (!g_session.active()) {
      session::Settings settings;
      settings.session_directory = "/tmp";
      REQUIRE(g_session.create(kHook, settings));
      g_session.remove_file(kHook);
    }
  }

  void apply(const RangeChange& change) {
    bytes += static_cast<std::int64_t>(change.added_bytes) -
             static_cast<std::int64_t>(change.removed_bytes);
    count += static_cast<std::int64_t>(change.added_count) - change.removed_count;
    reserved += change.reserved_bytes;
    REQUIRE(change.dropped == 0);
  }

  void fill(std::uint64_t first, std::uint64_t end, Page page) {
    for (std::uint64_t i = first; i < end; ++i) pages[i] = page;
  }

  // Ranges are disjoint, highest first. Pages, figures, session and holders agree.
  void check() {
    std::vector<Page> seen(kPages);
    std::uint64_t above = ~std::uint64_t{0}, usable = 0;
    std::int64_t counted = 0, ranges = 0, reservations = 0;
    std::map<std::uint32_t, std::pair<std::uint64_t, std::uint64_t>> held;
    table.for_each([&](const Range& range) {
      REQUIRE(range.start < range.end);
      REQUIRE(range.end <= above);
      above = range.start;
      for (std::uint64_t at = range.start; at < range.end; at += kPageBytes) {
        seen[(at - kBase) / kPageBytes] = {range.kind, range.anonymous, range.holder,
                                           range.is_usable};
      }
      const auto bytes_here = range.end - range.start;
      if (range.kind == RangeKind::counted) {
        counted += static_cast<std::int64_t>(bytes_here);
        ++ranges;
        held[range.holder].first += bytes_here;
        held[range.holder].second += 1;
      }
      if (range.kind == RangeKind::reservation)
        reservations += static_cast<std::int64_t>(bytes_here);
      if (range.is_usable) {
        REQUIRE(range.kind == RangeKind::reservation);
        counted += static_cast<std::int64_t>(range.touched_bytes);
        usable += bytes_here;
        ++ranges;
        held[range.holder].first += range.touched_bytes;
        held[range.holder].second += 1;
      } else {
        REQUIRE(range.touched_bytes == 0);
      }
      const session::LiveRange& entry = g_session.live_ranges.at(range.slot);
      REQUIRE(range.slot != 0);
      REQUIRE(entry.start == range.start);
      REQUIRE(entry.bytes == bytes_here);
      REQUIRE(entry.holder == range.holder);
    });
    // Shares are blocks of whoever made the reservations grow.
    table.for_each_share([&](const Growers::Share& share) {
      REQUIRE((share.bytes != 0 && share.grower != share.reserving));
      held[share.reserving].first -= share.bytes;
      held[share.grower].first += share.bytes;
      held[share.grower].second += 1;
      ++ranges;
    });
    REQUIRE(seen == pages);
    REQUIRE(counted == bytes);
    REQUIRE(ranges == count);
    REQUIRE(reservations == reserved);
    REQUIRE(usable == table.usable_bytes());
    for (const auto& [holder, figures] : held) {
      REQUIRE(full_holder(holder).live_bytes == figures.first);
      REQUIRE(full_holder(holder).live_count == figures.second);
    }
  }
};

std::uint64_t address(std::uint64_t page) { return kBase + page * kPageBytes; }

}  // namespace

TEST_CASE("random mappings, cut and protected at random, agree with a map of pages") {
  Fixture f;
  std::vector<std::uint32_t> holders;
  for (std::uint32_t node = 1; node <= 5; ++node) {
    holders.push_back(g_holders.find_or_add(kHook, node, Space::map, Api::mmap, 0));
  }
  std::mt19937 random(20261121);
  const auto below = [&](std::uint64_t n) { return random() % n; };
  std::vector<Range> looked_at;
  unsigned done = 0;
  for (unsigned round = 0; round < rounds(40'000); ++round) {
    const std::uint64_t first = below(kPages),
                        end = first + 1 + below(std::min<std::uint64_t>(24, kPages - first));
    const std::uint64_t bytes =
        (end - first) * kPageBytes - below(kPageBytes);  // rounded up by the table
    const std::uint32_t holder = holders[below(holders.size())];
    switch (below(8)) {
      case 0:
      case 1: {
        const auto kind = static_cast<RangeKind>(1 + below(3));
        const bool anonymous = kind != RangeKind::other || below(2) == 0;
        f.apply(f.table.map(kHook, address(first), bytes, kind, anonymous, holder, 7,
                            below(2) == 0 ? Growth::extend : Growth::separate));
        f.fill(first, end, {kind, anonymous, kind == RangeKind::counted ? holder : 0});
        break;
      }
      case 2:
        f.apply(f.table.unmap(kHook, address(first), bytes));
        f.fill(first, end, {});
        break;
      case 3: {
        const int protection = below(2) == 0 ? PROT_READ | PROT_WRITE : PROT_NONE;
        std::uint64_t promotable = 0, counted = 0;
        for (std::uint64_t i = first; i < end; ++i) {
          promotable += f.pages[i].anonymous && f.pages[i].kind != RangeKind::counted;
          counted += f.pages[i].kind == RangeKind::counted;
        }
        REQUIRE(f.table.promotable_bytes(kHook, address(first), bytes) == promotable * kPageBytes);
        REQUIRE(f.table.counted_bytes(kHook, address(first), bytes) == counted * kPageBytes);
        f.apply(f.table.protect(kHook, address(first), bytes, protection, holder, 7));
        for (std::uint64_t i = first; i < end; ++i) {
          Page& page = f.pages[i];
          if (!page.anonymous) continue;
          if ((protection & PROT_WRITE) != 0 && page.kind != RangeKind::counted)
            page = {RangeKind::counted, true, holder};
          if (protection == PROT_NONE && page.kind == RangeKind::counted)
            page = {RangeKind::reservation, true, 0, false};
        }
        break;
      }
      case 6:
        f.apply(f.table.reserve(kHook, address(first), bytes, RangeKind::reservation, holder, 7));
        f.fill(first, end, {RangeKind::reservation, true, holder, true});
        break;
      case 7:
        f.table.for_each([&](const Range& range) {
          if (below(2) == 0) looked_at.push_back(range);
        });
        for (const Range& range : looked_at) {
          std::vector<Growers::Part> parts(below(4));
          for (Growers::Part& part : parts) part = {holders[below(holders.size())], 1 + below(9)};
          f.apply(f.table.set_touched(
              kHook, range.start, range.end,
              below((range.end - range.start) / kPageBytes + 1) * kPageBytes,
              {parts, below(2) == 0 ? 0 : holder, static_cast<std::uint32_t>(below(100))}));
        }
        looked_at.clear();
        break;
      case 4:  // read-only: nothing changes
        f.apply(f.table.protect(kHook, address(first), bytes, PROT_READ, holder, 7));
        break;
      default: {
        // The kernel moves only within one mapping, and never onto the old range.
        const std::uint64_t to = below(kPages),
                            to_end = to + 1 + below(std::min<std::uint64_t>(24, kPages - to));
        if (to < end && first < to_end) continue;
        const Page old = f.pages[first];
        f.apply(f.table.remap(kHook, address(first), (end - first) * kPageBytes, address(to),
                              (to_end - to) * kPageBytes, holder, 7));
        f.fill(first, end, {});
        f.fill(to, to_end,
               old.kind == RangeKind::counted ? Page{old.kind, old.anonymous, holder, false} : old);
        break;
      }
    }
    f.check();
    ++done;
  }
  CHECK(done > rounds(30'000));
}

TEST_CASE("a break that grows in steps is one range") {
  Fixture f;
  const std::uint32_t holder = g_holders.find_or_add(kHook, 99, Space::map, Api::brk, 0);
  for (std::uint64_t page = 0; page < 10; ++page) {
    f.apply(f.table.map(kHook, address(page), kPageBytes, RangeKind::counted, true, holder, 0,
                        Growth::extend));
  }
  f.fill(0, 10, {RangeKind::counted, true, holder});
  f.check();
  CHECK(f.count == 1);
  f.apply(f.table.unmap(kHook, address(8), 2 * kPageBytes));
  f.fill(8, 10, {});
  f.check();
  CHECK(f.count == 1);
}

TEST_CASE("thousands of mappings, in either direction, are all removed") {
  Fixture f;
  const std::uint32_t holder = g_holders.find_or_add(kHook, 98, Space::map, Api::mmap, 0);
  constexpr std::uint64_t kCount = 20'000;
  for (std::uint64_t i = 0; i < kCount; ++i) {
    const std::uint64_t at = i % 2 == 0 ? i : 4 * kCount - i;
    f.apply(f.table.map(kHook, address(at * 2), kPageBytes, RangeKind::counted, true, holder, 0));
  }
  CHECK(f.count == kCount);
  CHECK(full_holder(holder).live_count == kCount);
  const std::uint32_t slots = g_session.live_ranges.size();
  f.apply(f.table.unmap(kHook, kBase, address(16 * kCount) - kBase));
  CHECK(f.count == 0);
  CHECK(f.bytes == 0);
  f.apply(f.table.map(kHook, kBase, 5 * kPageBytes, RangeKind::counted, true, holder, 0));
  CHECK(g_session.live_ranges.size() == slots);  // slots are used again
}

TEST_CASE("a forked child has its parent's mappings in its own session") {
  Fixture f;
  const std::uint32_t holder = g_holders.find_or_add(kHook, 97, Space::map, Api::mmap, 0);
  f.apply(f.table.map(kHook, address(0), 3 * kPageBytes, RangeKind::counted, true, holder, 0));
  f.apply(f.table.map(kHook, address(8), 5 * kPageBytes, RangeKind::reservation, true, 0, 0));
  const std::uint32_t pool = g_holders.find_or_add(kHook, 98, Space::map, Api::mmap, 0);
  f.apply(f.table.map(kHook, address(20), 9 * kPageBytes, RangeKind::counted, true, pool, 0));
  const RangeChange mapped = f.table.detach(kHook, pool);
  CHECK(mapped.added_bytes == 12 * kPageBytes);
  CHECK(mapped.added_count == 2);
  CHECK(mapped.reserved_bytes == 5 * kPageBytes);
  f.apply(f.table.unmap(kHook, address(2), kPageBytes));  // before the child's session starts
  const std::uint32_t inherited = g_holders.find_or_add(kHook, 96, Space::map, Api::inherited, 0);
  f.apply(f.table.unmap(kHook, address(22), kPageBytes));  // splits the pool's
  const std::uint32_t own_pool = g_holders.find_or_add(kHook, 95, Space::map, Api::mmap, 0);
  CHECK(f.table.adopt(kHook, inherited, own_pool).added_bytes == 10 * kPageBytes);
  CHECK(full_holder(own_pool).live_bytes == 8 * kPageBytes);
  CHECK(full_holder(own_pool).live_count == 2);
  f.fill(0, 2, {RangeKind::counted, true, inherited});
  f.fill(20, 22, {RangeKind::counted, true, own_pool});
  f.fill(23, 29, {RangeKind::counted, true, own_pool});
  f.fill(8, 13, {RangeKind::reservation, true, 0});
  f.check();
}

TEST_CASE("a private file mapping counts what is touched once mprotect() makes it writable") {
  Fixture f;
  const std::uint64_t start = kBase, bytes = 4 * session::kLookBytes;
  const std::uint32_t holder = 1;
  f.apply(f.table.map(kHook, start, bytes, RangeKind::private_file, false, 0, 0));
  CHECK(f.count == 0);
  CHECK(f.table.has_unwritten_file(kHook, start, bytes));
  CHECK(f.table.promotable_bytes(kHook, start, bytes) == 0);  // a limit does not count it
  SUBCASE("a part of it") {
    f.apply(f.table.protect(kHook, start + session::kLookBytes, 2 * session::kLookBytes,
                            PROT_READ | PROT_WRITE, holder, 0));
    CHECK(f.count == 1);
    CHECK(f.bytes == 0);
    CHECK(f.table.usable_bytes() == 2 * session::kLookBytes);
    f.apply(f.table.set_touched(kHook, start + session::kLookBytes, start + 3 * session::kLookBytes,
                                kPageBytes, {}));
    CHECK(f.bytes == static_cast<std::int64_t>(kPageBytes));
    CHECK(f.table.has_unwritten_file(kHook, start, bytes));  // on both sides
    CHECK_FALSE(f.table.has_unwritten_file(kHook, start + session::kLookBytes, kPageBytes));
    f.apply(f.table.protect(kHook, start, bytes, PROT_READ, holder, 0));  // its pages stay
    CHECK(f.bytes == static_cast<std::int64_t>(kPageBytes));
  }
  SUBCASE("pieces that are not looked at stay as they are") {
    f.apply(f.table.protect(kHook, start, kPageBytes, PROT_READ | PROT_WRITE, holder, 0));
    CHECK(f.count == 0);
  }
  f.apply(f.table.unmap(kHook, start, bytes));
  CHECK(f.bytes == 0);
  CHECK(f.count == 0);
}

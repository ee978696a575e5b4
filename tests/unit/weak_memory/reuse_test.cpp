// A reader in another process finds an entry that is used again as it was, as it is, or not at all.
#include <doctest/doctest.h>

#include <numeric>
#include <set>
#include <string>
#include <tuple>

#include "recorder/live/block_hash.h"
#include "recorder/live/device_blocks.h"
#include "recorder/live/range_table.h"
#include "recorder/session/reuse.h"
#include "tests/unit/weak_memory/watched_session.h"

using namespace oomrec;
using namespace oomrec::live;
using session::g_session;
using session::TableId;

namespace {

using weak_memory::kHook;

constinit BlockHash g_blocks;
constinit DeviceBlocks g_devices;
HolderTable g_holders;
RangeTable g_ranges{g_holders};

// Blocks that differ in every field.
Block block(std::uint64_t address, std::uint32_t number) {
  return {address, 1000 + number, 100 + number, 10 + number, number};
}
constexpr std::uint64_t kAddress = 0x7000'0000;

void insert(const Block& entry) {
  Block replaced;
  REQUIRE(g_blocks.insert(kHook, entry, replaced));
}
void remove(std::uint64_t address) {
  Block removed;
  REQUIRE(g_blocks.remove(kHook, address, removed));
}

// The numbers of the blocks that readers find in slot 1; 0: none; ?: it is none of ours.
std::string blocks_seen() {
  std::set<std::string> seen;
  weak_memory::read([&] {
    session::LiveBlock found;
    REQUIRE(g_session.view().read(TableId::live_blocks, 1, found));
    const Block whole = block(found.address, found.birth_s);
    const bool is_whole =
        found.bytes == whole.bytes && found.holder == whole.holder && found.weight == whole.weight;
    seen.insert(found.address == 0 ? "0" : is_whole ? std::to_string(found.birth_s) : "?");
  });
  return std::accumulate(seen.begin(), seen.end(), std::string{});
}

}  // namespace

TEST_CASE("a block that replaces another at its address") {
  const weak_memory::WatchedSession session{g_blocks};
  insert(block(kAddress, 1));
  weak_memory::settle();
  weak_memory::write(1, [] { insert(block(kAddress, 2)); });
  CHECK(blocks_seen() == "012");
}

TEST_CASE("a freed block's slot, used by another thread for another address and for the same") {
  // The next address whose lock and list of free slots are the same.
  const auto next = [] {
    std::uint64_t address = kAddress;
    const auto shard = [](std::uint64_t of) { return session::mix(of) >> 32 & 31; };
    while (shard(address += 16) != shard(kAddress)) continue;
    return address;
  }();
  for (const std::uint64_t second : {kAddress, next}) {
    const weak_memory::WatchedSession session{g_blocks};
    insert(block(kAddress, 1));
    weak_memory::settle();
    weak_memory::write(1, [] { remove(kAddress); });
    weak_memory::write(2, [&] { insert(block(second, 2)); });
    weak_memory::write(1, [&] { remove(second); });
    weak_memory::write(2, [] { insert(block(kAddress, 3)); });
    REQUIRE(g_session.live_blocks.size() == 2);
    CHECK(blocks_seen() == "0123");
  }
}

TEST_CASE("a free slot that is used and free again") {
  const weak_memory::WatchedSession session{g_blocks};
  insert(block(kAddress, 1));
  remove(kAddress);
  weak_memory::settle();
  weak_memory::write(1, [] {
    insert(block(kAddress, 2));
    remove(kAddress);
  });
  CHECK(blocks_seen() == "02");
}

TEST_CASE("the same, by a writer that was killed: at most one is there") {
  const weak_memory::WatchedSession session{g_blocks};
  insert(block(kAddress, 1));
  weak_memory::settle();
  weak_memory::write(1, [] {
    remove(kAddress);
    insert(block(kAddress, 2));
  });
  std::set<int> left;
  weak_memory::read_after_each_store([&] {
    session::LiveBlock found;
    REQUIRE(g_session.view().read(TableId::live_blocks, 1, found));
    left.insert(found.address == 0 ? 0 : static_cast<int>(found.bytes - 1000));
    CHECK((found.address == 0 || found.holder == found.bytes - 900));
  });
  CHECK(left == std::set{0, 1, 2});
}

TEST_CASE("a range that grows in place, is cut, and whose slot is used again") {
  const weak_memory::WatchedSession session{g_ranges};
  using Found = std::tuple<std::uint64_t, std::uint64_t, std::uint32_t>;  // start, bytes, birth
  constexpr std::uint64_t kPage = 64 * 1024;  // a multiple of every page
  const auto map = [](std::uint64_t start, std::uint64_t pages, std::uint32_t birth,
                      Growth growth) {
    g_ranges.map(kHook, start * kPage, pages * kPage, RangeKind::counted, true, 0, birth, growth);
  };
  map(16, 1, 1, Growth::separate);
  weak_memory::settle();
  weak_memory::write(1, [&] {
    map(17, 2, 2, Growth::extend);
    g_ranges.unmap(kHook, 16 * kPage, kPage);
    g_ranges.unmap(kHook, 17 * kPage, 2 * kPage);
    map(16, 5, 3, Growth::separate);
  });
  std::set<Found> seen;
  weak_memory::read([&] {
    session::LiveRange found;
    REQUIRE(g_session.view().read(TableId::live_ranges, 1, found));
    if (found.start != 0) seen.insert({found.start / kPage, found.bytes / kPage, found.birth_s});
  });
  CHECK(seen == std::set<Found>{{16, 1, 1}, {16, 3, 1}, {17, 2, 1}, {16, 5, 3}});
}

TEST_CASE("a block of a device that changes in place, and is gone") {
  const weak_memory::WatchedSession session{g_devices};
  REQUIRE(g_session.open_devices(kHook));
  const auto entry = [](std::uint32_t number) {
    live::DeviceBlock block;
    block.name = {session::Vendor::cuda, session::DeviceKey::address, 0x1000};
    block.bytes = number;
    block.context = 10 + number;
    block.owner = 20 + number;
    block.references = number;
    return block;
  };
  live::DeviceBlock other;
  REQUIRE(g_devices.insert(kHook, entry(1), other));
  weak_memory::settle();
  weak_memory::write(1, [&] {
    g_devices.change(kHook, entry(1).name, [&](live::DeviceBlock& block) {
      block = entry(2);
      return true;
    });
  });
  weak_memory::write(2, [&] { g_devices.remove(kHook, entry(1).name, other); });
  std::set<std::uint32_t> seen;
  weak_memory::read([&] {
    session::DeviceBlock found;
    REQUIRE(g_session.view().read(TableId::device_blocks, 1, found));
    const std::uint32_t number = found.references;
    if (found.key == 0) return;
    CHECK(found.bytes == number);
    CHECK(found.context == 10 + number);
    CHECK(found.owner == 20 + number);
    seen.insert(number);
  });
  CHECK(seen == std::set<std::uint32_t>{1, 2});
}

TEST_CASE("an entry without a version: each time is another's") {
  const weak_memory::WatchedSession session;
  std::uint32_t entry = 0;
  const auto write = [](session::Point& point, std::uint64_t time) {
    session::rewrite(std::atomic_ref(point.time_ns), time, [&] {
      point.rss_bytes = 10 + time;
      point.live_bytes[0] = 20 + time;
    });
  };
  REQUIRE(g_session.points.append(kHook, entry, [&](session::Point& point) { write(point, 1); }));
  weak_memory::settle();
  weak_memory::write(1, [&] {
    write(g_session.points.at(entry), 2);
    write(g_session.points.at(entry), 3);
  });
  std::set<std::uint64_t> seen;
  weak_memory::read([&] {
    session::Point found;
    REQUIRE(g_session.view().read(TableId::points, entry, found));
    seen.insert(found.time_ns);
    if (found.time_ns == 0) return;
    CHECK(found.rss_bytes == 10 + found.time_ns);
    CHECK(found.live_bytes[0] == 20 + found.time_ns);
  });
  CHECK(seen == std::set<std::uint64_t>{0, 1, 2, 3});
}

TEST_CASE("without a barrier on either side, an entry of two halves is found") {
  struct alignas(64) Entry {
    std::atomic<std::uint64_t> guard{1};
    std::uint64_t field = 1;
  };
  for (const bool fenced_writer : {false, true}) {
    for (const bool fenced_reader : {false, true}) {
      Entry entry;
      weak_memory::watch(&entry, sizeof entry);
      weak_memory::write(1, [&] {
        entry.guard.store(0, std::memory_order_relaxed);
        if (fenced_writer) std::atomic_thread_fence(std::memory_order_release);
        entry.field = 2;
        entry.guard.store(2, std::memory_order_release);
      });
      bool mixed = false;
      weak_memory::read([&] {
        const std::uint64_t before = entry.guard.load(std::memory_order_acquire);
        const std::uint64_t field = entry.field;
        if (fenced_reader) std::atomic_thread_fence(std::memory_order_acquire);
        const std::uint64_t after = entry.guard.load(std::memory_order_relaxed);
        mixed |= before == after && before != 0 && field != before;
      });
      weak_memory::reset();
      CHECK(mixed == !(fenced_writer && fenced_reader));
    }
  }
}

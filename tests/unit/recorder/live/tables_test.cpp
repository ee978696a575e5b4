// The table of live blocks, and bits of objects.
#include "recorder/live/block_hash.h"

#include <doctest/doctest.h>

#include <atomic>
#include <random>
#include <set>
#include <thread>
#include <unordered_map>
#include <vector>

#include "recorder/live/object_bits.h"
#include "recorder/session/writer.h"
#include "tests/unit/sanitized.h"

using namespace oomrec::live;
using namespace oomrec;
using session::g_session;

// --- The hash table of live blocks, compared with std::unordered_map, on one and on four threads

namespace {

const InHook kHook = OutsideHooks::in_hook();

void need_session() {
  if (g_session.active()) return;
  session::Settings settings;
  settings.session_directory = "/tmp";
  settings.budget_bytes = std::uint64_t{64} << 20;
  REQUIRE(g_session.create(kHook, settings));
  g_session.remove_file(kHook);
}

std::uint64_t live_entries() {
  std::uint64_t live = 0;
  for (std::uint32_t slot = 1; slot < g_session.live_blocks.size(); ++slot) {
    live += g_session.live_blocks.at(slot).address != 0;
  }
  return live;
}

constinit BlockHash g_table;

}  // namespace

TEST_CASE("inserts and removes at random agree with a map") {
  need_session();
  std::unordered_map<std::uint64_t, std::uint64_t> truth;
  std::mt19937_64 random(42);
  unsigned hits = 0, replacements = 0;
  for (unsigned round = 0; round < rounds(400'000); ++round) {
    const std::uint64_t address = 0x5555'0000'0000 + random() % 30'000 * 16;
    Block block;
    if (random() % 2 == 0) {
      const std::uint64_t bytes = random() % 5000;
      REQUIRE(g_table.insert(kHook, {address, bytes, 3, 1, 9}, block));
      const auto known = truth.find(address);
      REQUIRE((block.address != 0) == (known != truth.end()));
      if (known != truth.end()) {
        ++replacements;
        REQUIRE(block.bytes == known->second);
      }
      truth[address] = bytes;
      REQUIRE(g_table.may_hold(address));
    } else {
      const auto known = truth.find(address);
      REQUIRE(g_table.remove(kHook, address, block) == (known != truth.end()));
      if (known == truth.end()) continue;
      ++hits;
      REQUIRE(block.bytes == known->second);
      REQUIRE(block.holder == 3);
      REQUIRE(block.birth_s == 9);
      truth.erase(known);
    }
  }
  CHECK(hits > rounds(50'000));
  CHECK(replacements > rounds(50'000));
  CHECK(live_entries() == truth.size());
  Block block;
  for (const auto& [address, bytes] : truth) REQUIRE(g_table.remove(kHook, address, block));
  CHECK(live_entries() == 0);
  CHECK(g_session.live_blocks.size() < 30'100);  // slots are reused
}

TEST_CASE("an empty table finds nothing") {
  need_session();
  g_table.reset(kHook);
  for (std::uint64_t at = 0; at < 10'000; ++at)
    REQUIRE_FALSE(g_table.may_hold(0x7f00'0000'0000 + at * 16));
}

TEST_CASE("four threads, each block freed by the next one") {
  need_session();
  constexpr int kThreads = 4;
  constexpr std::uint64_t kRounds = 40'000;
  std::vector<std::atomic<std::uint64_t>> mailboxes(kThreads);
  std::atomic<std::uint64_t> removed{0}, left{0};
  const std::uint64_t before = live_entries();
  std::vector<std::thread> threads;
  for (int id = 0; id < kThreads; ++id) {
    threads.emplace_back([&, id] {
      Block block;
      for (std::uint64_t round = 0; round < kRounds; ++round) {
        const std::uint64_t mine =
            0x6000'0000'0000 + (static_cast<std::uint64_t>(id) * kRounds + round) * 16;
        if (!g_table.insert(kHook, {mine, mine % 977, 1, 1, 0}, block)) std::abort();
        const std::uint64_t theirs =
            mailboxes[static_cast<std::size_t>((id + 1) % kThreads)].exchange(mine);
        if (theirs == 0) continue;
        if (!g_table.remove(kHook, theirs, block) || block.bytes != theirs % 977) std::abort();
        removed.fetch_add(1);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& mailbox : mailboxes) left += mailbox != 0;
  CHECK(removed + left == kThreads * kRounds);
  CHECK(live_entries() - before == left);
}

TEST_CASE("blocks get another weight, or go") {
  need_session();
  g_table.reset(kHook);
  Block block;
  constexpr std::uint64_t kFirst = 0x7000'0000, kBlocks = 3000;
  for (std::uint64_t i = 0; i < kBlocks; ++i)
    REQUIRE(g_table.insert(kHook, {kFirst + i * 64, i, 1, 2, 7}, block));
  std::uint64_t seen = 0, changed = 0;
  for (std::uint32_t slot = 1; slot < g_session.live_blocks.size(); ++slot) {
    g_table.reweigh(
        kHook, slot,
        [&](const Block& each) {
          if (each.address < kFirst || each.address >= kFirst + kBlocks * 64) return each.weight;
          ++seen;
          return static_cast<std::uint32_t>(each.bytes % 3);
        },
        [&](const Block& each, std::uint32_t weight) {
          ++changed;
          CHECK(weight == each.bytes % 3);
          CHECK(each.weight == 2);
          return InFilter::yes;
        });
  }
  CHECK(seen == kBlocks);
  CHECK(changed == kBlocks / 3 * 2);
  for (std::uint64_t i = 0; i < kBlocks; ++i) {
    const std::uint64_t address = kFirst + i * 64;
    REQUIRE(g_table.remove(kHook, address, block) == (i % 3 != 0));
    if (i % 3 == 0) continue;
    CHECK(block.bytes == i);
    CHECK(block.weight == i % 3);
    CHECK(block.birth_s == 7);
  }
  // Nothing is left in the filter, and slots are used again.
  const std::uint32_t slots = g_session.live_blocks.size();
  for (std::uint64_t i = 0; i < kBlocks; ++i) CHECK_FALSE(g_table.may_hold(kFirst + i * 64));
  for (std::uint64_t i = 0; i < kBlocks; ++i)
    REQUIRE(g_table.insert(kHook, {kFirst + i * 64, i, 1, 1, 0}, block));
  CHECK(g_session.live_blocks.size() == slots);
  for (std::uint64_t i = 0; i < kBlocks; ++i)
    REQUIRE(g_table.remove(kHook, kFirst + i * 64, block));
}

TEST_CASE("an index that may not grow rejects entries and keeps the old ones") {
  need_session();
  g_table.reset(kHook);
  session::g_index_budget_bytes = session::g_index_bytes.load() + 512 * 1024;
  Block block;
  std::vector<std::uint64_t> taken;
  std::uint64_t rejected = 0;
  for (std::uint64_t at = 0x1000; at < 0x1000 + 200'000 * 16; at += 16) {
    if (g_table.insert(kHook, {at, 1, 1, 1, 0}, block)) {
      taken.push_back(at);
    } else {
      ++rejected;
    }
  }
  CHECK(rejected > 0);
  CHECK(taken.size() > 10'000);
  for (const std::uint64_t at : taken) REQUIRE(g_table.remove(kHook, at, block));
  session::g_index_budget_bytes = ~std::uint64_t{0};
}

// --- Which addresses have a recorded object: compared with std::set, and spans that share a place

static constinit ObjectBits g_bits;

TEST_CASE("objects at random addresses agree with a set") {
  std::set<std::uint64_t> truth;
  std::mt19937_64 random(7);
  for (int round = 0; round < 200'000; ++round) {
    const std::uint64_t address = 0x7fff'0000'0000 + random() % 40'000 * 16 * 61;
    if (random() % 2 == 0) {
      REQUIRE(g_bits.add(kHook, address));
      truth.insert(address);
    } else {
      g_bits.remove(kHook, address);
      truth.erase(address);
    }
    const std::uint64_t other = 0x7fff'0000'0000 + random() % 40'000 * 16 * 61;
    REQUIRE(g_bits.holds(other) == truth.contains(other));
    REQUIRE((g_bits.may_hold(other) || !truth.contains(other)));
    REQUIRE(g_bits.count() == truth.size());
  }
  CHECK(g_bits.ever() > truth.size());
  g_bits.start_anew(kHook);
  CHECK(g_bits.ever() == 0);
  CHECK(g_bits.count() == truth.size());
  for (const std::uint64_t address : truth) {
    REQUIRE(g_bits.holds(address));
    g_bits.remove(kHook, address);
  }
  CHECK(g_bits.count() == 0);
}

TEST_CASE("cleared, it holds nothing, and takes objects again") {
  constexpr std::uint64_t kFirst = 0x7abc'0000'0000;
  for (std::uint64_t at = 0; at < 1000; ++at) REQUIRE(g_bits.add(kHook, kFirst + at * 16 * 4099));
  g_bits.clear(kHook);
  CHECK(g_bits.count() == 0);
  CHECK(g_bits.ever() == 0);
  for (std::uint64_t at = 0; at < 1000; ++at) REQUIRE_FALSE(g_bits.holds(kFirst + at * 16 * 4099));
  REQUIRE(g_bits.add(kHook, kFirst));
  CHECK(g_bits.holds(kFirst));
  CHECK(g_bits.count() == 1);
  g_bits.clear(kHook);
}

TEST_CASE("a null pointer, and an address of a span without objects, have none") {
  CHECK_FALSE(g_bits.holds(0));
  CHECK_FALSE(g_bits.may_hold(0));
  CHECK_FALSE(g_bits.holds(0x1234'5670));
  g_bits.remove(kHook, 0x1234'5670);
  CHECK(g_bits.count() == 0);
}

TEST_CASE("thousands of spans are told apart; when there are too many, objects are refused") {
  constexpr std::uint64_t kSpan = std::uint64_t{1} << 20, kFirst = 0x1000'0000'0000;
  std::set<std::uint64_t> added;
  for (std::uint64_t i = 0; i < 9'000; ++i)
    if (g_bits.add(kHook, kFirst + i * kSpan)) added.insert(kFirst + i * kSpan);
  CHECK(added.size() > 4'000);
  CHECK(added.size() < 8'192);
  for (std::uint64_t i = 0; i < 9'000; ++i) {
    const std::uint64_t address = kFirst + i * kSpan;
    REQUIRE(g_bits.holds(address) == added.contains(address));
    REQUIRE_FALSE(g_bits.holds(address + 16));
  }
  g_bits.remove(kHook, kFirst);
  CHECK_FALSE(g_bits.holds(kFirst));
  CHECK(g_bits.count() == added.size() - 1);
}

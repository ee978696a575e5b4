// Small blocks in exact mode: the side table, and the sums that threads accumulate for holders.
#include <doctest/doctest.h>

#include <map>
#include <random>
#include <thread>
#include <vector>

#include "recorder/events/heap.h"
#include "recorder/failures/bundle_scheduler.h"
#include "recorder/state/state.h"
#include "recorder/tick/tick.h"
#include "tests/unit/recorder/running.h"

using namespace oomrec;
using namespace oomrec::running;
using doubles::t_stack;
using session::g_session;
using session::SmallBlock;

namespace {

std::map<std::uint64_t, SmallBlock> small_blocks() {
  std::map<std::uint64_t, SmallBlock> blocks;
  const session::View view = g_session.view();
  for (std::uint32_t page = 1; page < g_session.side_pages.size(); ++page)
    view.for_each_small_block(page,
                              [&](const SmallBlock& block) { blocks[block.address] = block; });
  return blocks;
}

std::uint64_t blocks_in_hash() {
  std::uint64_t count = 0;
  for (std::uint32_t i = 1; i < g_session.live_blocks.size(); ++i)
    count += g_session.live_blocks.at(i).address != 0;
  return count;
}

void release_all() {
  for (const auto& [address, block] : small_blocks())
    recorder::on_free(kHook, Space::heap, Api::free, address, block.bytes);
  REQUIRE(small_blocks().empty());
}

// Sums in lanes that are not published yet.
std::uint64_t summed_up() {
  std::uint64_t sums = 0;
  g_session.view().for_each_sum([&](const session::View::PendingSum&) { ++sums; });
  return sums;
}

}  // namespace

TEST_CASE("birth times have a precision of seconds for days, of minutes for years") {
  using session::packed_birth, session::unpacked_birth;
  for (const std::uint64_t s : {0u, 1u, 86'400u, (1u << 20) - 1})
    CHECK(unpacked_birth(packed_birth(s)) == s);
  for (const std::uint64_t s : {std::uint64_t{1} << 20, std::uint64_t{30'000'000}}) {
    CHECK(unpacked_birth(packed_birth(s)) <= s);
    CHECK(s - unpacked_birth(packed_birth(s)) < 64);
  }
  CHECK(packed_birth(~std::uint64_t{0}) < 1u << 21);
}

TEST_CASE("the side table has exactly the live blocks") {
  need(Mode::exact);
  std::mt19937_64 random(11);
  std::map<std::uint64_t, std::uint64_t> truth;
  const std::uint64_t in_hash = blocks_in_hash();
  for (int round = 0; round < 200'000; ++round) {
    // Some blocks begin 16 bytes into a span, like glibc's. A second area is far away.
    const std::uint64_t base = random() % 2 == 0 ? 0x5555'0000'0000 : 0x7fff'ff00'0000;
    const std::uint64_t address = base + random() % 20'000 * 48;
    t_stack = static_cast<std::uint32_t>(1000 + random() % 3000);
    if (const auto known = truth.find(address); known != truth.end()) {
      const recorder::Released released = release(address, known->second);
      REQUIRE(released.weight == 1);
      REQUIRE(released.bytes == usable(known->second));
      truth.erase(known);
    } else {
      const std::uint64_t bytes = 8 + random() % 400;
      allocate(address, bytes);
      truth[address] = bytes;
    }
  }
  const auto found = small_blocks();
  REQUIRE(found.size() == truth.size());
  for (const auto& [address, bytes] : truth) {
    const auto block = found.find(address);
    REQUIRE(block != found.end());
    REQUIRE(block->second.bytes == usable(bytes));
  }
  CHECK(blocks_in_hash() == in_hash);
  CHECK(holders_agree());
  release_all();
  CHECK(holders_agree());
}

TEST_CASE("a block keeps its stack until its free") {
  need(Mode::exact);
  t_stack = 5001;
  allocate(0x6000'0000'0010, 24);
  const auto found = small_blocks();
  REQUIRE(found.size() == 1);
  CHECK(found.begin()->first == 0x6000'0000'0010);
  CHECK(found.begin()->second.node == raw_holder_of(5001, Space::heap).node);
  CHECK(holder_of(5001, Space::heap)->live_bytes == usable(24));
  t_stack = 5002;
  release(0x6000'0000'0010, 24);
  CHECK(holder_of(5001, Space::heap)->live_bytes == 0);
  CHECK(holder_of(5001, Space::heap)->total_bytes == usable(24));
  CHECK(small_blocks().empty());
}

TEST_CASE("a block at an occupied address replaces the old one") {
  need(Mode::exact);
  t_stack = 5101;
  allocate(0x6100'0000'0000, 100);
  t_stack = 5102;
  allocate(0x6100'0000'0000, 200);
  CHECK(holder_of(5101, Space::heap)->live_count == 0);
  CHECK(holder_of(5102, Space::heap)->live_bytes == usable(200));
  // Begins elsewhere in the same word, so the first one cannot be live any more.
  allocate(0x6100'0000'0010, 8);
  CHECK(small_blocks().size() == 1);
  CHECK(release(0x6100'0000'0000, 200).weight == 0);
  CHECK(release(0x6100'0000'0010, 8).weight == 1);
}

TEST_CASE("large blocks, and those with a large node index, go to the hash table") {
  need(Mode::exact);
  const std::uint64_t in_hash = blocks_in_hash();
  t_stack = 5201;
  allocate(0x6200'0000'0000, session::kSmallBlockBytes);
  CHECK(blocks_in_hash() == in_hash + 1);
  CHECK(small_blocks().empty());
  CHECK(release(0x6200'0000'0000, session::kSmallBlockBytes).bytes ==
        usable(session::kSmallBlockBytes));
  CHECK(blocks_in_hash() == in_hash);
}

TEST_CASE("a tensor at the address of a small block is another block") {
  need(Mode::exact);
  constexpr std::uint64_t kAddress = 0xb000'0000;
  t_stack = 950;
  allocate(kAddress, 700);
  t_stack = 951;
  allocate(live::torch_key(kAddress), 700, Space::torch);
  REQUIRE(small_blocks().count(kAddress) == 1);
  release(live::torch_key(kAddress), 700, Space::torch);
  CHECK(small_blocks().count(kAddress) == 1);
  CHECK(holder_of(951, Space::torch)->live_count == 0);
  CHECK(holder_of(950, Space::heap)->live_count == 1);
  release(kAddress, 700);
  CHECK(small_blocks().count(kAddress) == 0);
  CHECK(holders_agree());
}

TEST_CASE("a failed realloc keeps the block") {
  need(Mode::exact);
  t_stack = 5301;
  allocate(0x6300'0000'0020, 333);
  const recorder::Released released = release(0x6300'0000'0020, 333);
  CHECK(small_blocks().empty());
  recorder::restore(kHook, Space::heap, released);
  const auto found = small_blocks();
  REQUIRE(found.size() == 1);
  CHECK(found.begin()->second.bytes == usable(333));
  CHECK(holder_of(5301, Space::heap)->live_bytes == usable(333));
  CHECK(holder_of(5301, Space::heap)->total_count == 1);
  CHECK(holders_agree());
  release_all();
}

TEST_CASE("four threads free each other's blocks") {
  need(Mode::exact);
  constexpr std::uint64_t kBlocks = 20'000;
  const auto at = [](std::uint64_t thread, std::uint64_t i) {
    return 0x6400'0000'0000 + (thread * kBlocks + i) * 32;
  };
  const auto before = totals(Space::heap);
  for (const bool giving : {true, false}) {
    std::vector<std::thread> threads;
    for (std::uint64_t id = 0; id < 4; ++id) {
      threads.emplace_back([=] {
        for (std::uint64_t i = 0; i < kBlocks; ++i) {
          t_stack = static_cast<std::uint32_t>(6000 + i % 300);
          giving ? allocate(at(id, i), 20) : void(release(at((id + 1) % 4, i), 20));
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    CHECK(holders_agree());
    CHECK(small_blocks().size() == (giving ? 4 * kBlocks : 0));
  }
  CHECK(totals(Space::heap).live_bytes == before.live_bytes);
  CHECK(holder_of(6000, Space::heap)->live_bytes == 0);
}

TEST_CASE("a peak step includes what a thread has accumulated, and nothing later") {
  need(Mode::exact);
  const auto& heap = g_session.header().spaces[static_cast<std::size_t>(Space::heap)];
  t_stack = 7001;
  for (std::uint64_t i = 0; i < 10; ++i) allocate(0x6500'0000'0000 + i * 256, 200);
  CHECK(summed_up() > 0);
  t_stack = 7002;  // causes the peak step
  const std::uint32_t epoch = heap.peak_epoch;
  allocate(0x6600'0000'0000, heap.peak_bytes + (64 << 20));
  REQUIRE(heap.peak_epoch > epoch);
  t_stack = 7001;
  for (std::uint64_t i = 0; i < 9; ++i) release(0x6500'0000'0000 + i * 256, 200);
  CHECK(holder_of(7001, Space::heap)->live_bytes == usable(200));
  CHECK(holder_of(7001, Space::heap)->peak_bytes == 10 * usable(200));
  CHECK(holder_of(7001, Space::heap)->peak_count == 10);
  release(0x6500'0000'0000 + 9 * 256, 200);
}

TEST_CASE("accumulated bytes reach the holders in time, large amounts at once") {
  need(Mode::exact);
  t_stack = 7101;
  for (std::uint64_t i = 0; i < 5; ++i) allocate(0x6700'0000'0000 + i * 32768, 20'000);
  CHECK(raw_holder_of(7101, Space::heap).live_bytes >= 60'000);
  t_stack = 7102;
  allocate(0x6700'0100'0000, 10);
  CHECK(raw_holder_of(7102, Space::heap).live_bytes == 0);
  CHECK(holder_of(7102, Space::heap)->live_bytes == usable(10));
  std::this_thread::sleep_for(std::chrono::milliseconds(150));
  t_stack = 7103;
  for (std::uint64_t i = 0; i < 40; ++i) allocate(0x6700'0200'0000 + i * 64, 10);
  CHECK(raw_holder_of(7102, Space::heap).live_bytes == usable(10));
  release_all();
}

TEST_CASE("spans with the same place among the latest keep their own words") {
  need(Mode::exact);
  release_all();
  // Equal in the lower 29 bits, which choose the place; the first is where a program without PIE
  // has its heap.
  const std::vector<std::uint64_t> addresses = {0x0123'4560, 0x2123'4560, 0x5555'4123'4560,
                                                0x7f55'4123'4560, 0x7fff'e123'4560};
  auto& table = recorder::g_state.small_blocks;
  const auto latest = [&](std::uint64_t address) {
    const auto* const words = table.latest_words(address);
    return words == nullptr ? 0 : words[table.slot_in_span(address)].load();
  };
  std::mt19937 random{7};
  std::map<std::uint64_t, std::uint64_t> live;
  for (int i = 0; i < 2'000; ++i) {
    const std::uint64_t address = addresses[random() % addresses.size()] + random() % 64 * 32;
    if (live.erase(address) != 0) {
      release(address, 48);
      CHECK(latest(address) == 0);
    } else {
      live[address] = 48;
      allocate(address, 48);
      CHECK(table.unpack(latest(address), address).node != 0);
    }
  }
  const auto recorded = small_blocks();
  CHECK(recorded.size() == live.size());
  for (const auto& [address, bytes] : live) CHECK(recorded.contains(address));
  release_all();
  CHECK(table.latest_words(0x3123'4560) == nullptr);  // never had a block
  CHECK(table.latest_words(0) == nullptr);
}

TEST_CASE("small blocks are still freed after the fallback to sampled mode") {
  need(Mode::exact);
  t_stack = 7201;
  allocate(0x6800'0000'0000, 50);
  recorder::fall_back_to_sampling();
  release(0x6800'0000'0000, 50);
  CHECK(holder_of(7201, Space::heap)->live_bytes == 0);
  CHECK(small_blocks().empty());
  CHECK(holders_agree());
}

// What is written once, or counts up: a reader, in another process or on another thread, that finds
// one thing also finds all that it leads to.
#include <doctest/doctest.h>

#include <set>
#include <string>

#include "common/session/brief_holder.h"
#include "common/session/ring.h"
#include "recorder/live/full_holders.h"
#include "recorder/live/node_map.h"
#include "recorder/live/side_table.h"
#include "recorder/session/index.h"
#include "tests/unit/append_node.h"
#include "tests/unit/weak_memory/watched_session.h"

using namespace oomrec;
using session::g_session;
using session::TableId;
using weak_memory::kHook;

namespace {

constexpr auto relaxed = std::memory_order_relaxed;
constexpr auto acquire = std::memory_order_acquire;

std::uint32_t append_node(std::uint32_t parent, std::uint64_t word) {
  std::uint32_t node = 0;
  REQUIRE(tests::append_node(g_session, node, parent, word));
  return node;
}

// The words of a stack's frames, innermost first, as digits.
std::string stack_of(std::uint32_t node) {
  std::string words;
  g_session.view().walk(node, [&](std::uint64_t word) { words += std::to_string(word); });
  return words;
}

}  // namespace

TEST_CASE("a stack's nodes, each by another thread, and their frames") {
  const weak_memory::WatchedSession watched;
  std::uint32_t node = 0;
  weak_memory::write(1, [&] { node = append_node(0, 1); });
  weak_memory::write(2, [&] { node = append_node(node, 2); });
  std::set<std::string> seen;
  weak_memory::read([&] {
    const auto count = static_cast<std::uint32_t>(g_session.view().count(TableId::nodes));
    seen.insert(std::to_string(count) + ":" + stack_of(count - 1));
  });
  CHECK(seen == std::set<std::string>{"1:", "2:1", "3:21"});
}

TEST_CASE("a module, and its path") {
  const weak_memory::WatchedSession watched;
  weak_memory::write(1, [] {
    const session::StringId path = g_session.add_string(kHook, "lib.so");
    std::uint32_t entry = 0;
    g_session.modules.append(kHook, entry, [&](session::Module& module) {
      module.base = 7;
      module.path = path;
    });
  });
  std::set<std::string> seen;
  weak_memory::read([&] {
    const session::View view = g_session.view();
    session::Module module{};
    if (!view.read(TableId::modules, 1, module)) return;
    CHECK(module.base == 7);
    seen.insert(std::string{view.string(module.path)});
  });
  CHECK(seen == std::set<std::string>{"lib.so"});
}

TEST_CASE("a table that grows while it is read") {
  const weak_memory::WatchedSession watched;
  const auto append = [](std::uint32_t number) {
    std::uint32_t entry = 0;
    g_session.threads.append(kHook, entry, [&](session::Thread& thread) {
      thread.first_seen_ns = number, thread.tid = 1;
    });
    REQUIRE(entry == number);
  };
  constexpr std::uint32_t kFirst = session::Chunks{sizeof(session::Thread)}.capacity(0);
  for (std::uint32_t number = 1; number < kFirst; ++number) append(number);
  weak_memory::settle();
  weak_memory::write(1, [&] { append(kFirst); });  // the first entry of the next chunk
  weak_memory::write(2, [&] { append(kFirst + 1); });
  std::set<std::uint64_t> counts;
  weak_memory::read([&] {
    const session::View view = g_session.view();
    const std::uint64_t count = view.count(TableId::threads);
    session::Thread thread{};
    REQUIRE(view.read(TableId::threads, count - 1, thread));
    CHECK(thread.first_seen_ns == count - 1);
    counts.insert(count);
  });
  CHECK(counts == std::set<std::uint64_t>{kFirst, kFirst + 1, kFirst + 2});
}

TEST_CASE("a holder that becomes full keeps its figures") {
  const weak_memory::WatchedSession watched;
  std::uint32_t number = 0;
  g_session.holders.append(kHook, number, [](session::HolderEntry& entry) {
    session::BriefHolder brief;
    CHECK(brief.add({48, 0, 1, 0, 0}, 0, 0));
    entry.node = 5;
    entry.figures.store(brief.packed(), relaxed);
  });
  weak_memory::settle();
  weak_memory::write(1, [&] { REQUIRE(live::make_full(kHook, number) != nullptr); });
  weak_memory::write(2, [&] { live::find_full(number)->live_bytes.store(96, relaxed); });
  std::set<std::uint64_t> seen;
  weak_memory::read([&] {
    session::Holder holder;
    REQUIRE(g_session.view().read(TableId::holders, number, holder));
    CHECK(holder.node == 5);
    CHECK(holder.live_count == 1);
    seen.insert(holder.live_bytes);
  });
  CHECK(seen == std::set<std::uint64_t>{48, 96});
}

TEST_CASE("a small block, and the stack that allocated it") {
  static constinit live::SideTable table;
  const weak_memory::WatchedSession watched{table};
  table.start(session::kSmallestSideShift);
  constexpr std::uint64_t kAddress = 0x7000'0000;
  REQUIRE(table.word_for(kHook, kAddress) != nullptr);  // of a block before, in the same page
  weak_memory::settle();
  std::uint32_t node = 0;
  weak_memory::write(1, [&] {
    node = append_node(append_node(0, 1), 2);
    live::SideTable::store(*table.word_for(kHook, kAddress), table.pack({kAddress, 24, node, 3}));
  });
  std::set<std::string> seen;
  weak_memory::read([&] {
    g_session.view().for_each_small_block(1, [&](const session::SmallBlock& block) {
      CHECK(block.address == kAddress);
      CHECK(block.bytes == 24);
      seen.insert(stack_of(block.node));
    });
  });
  CHECK(seen == std::set<std::string>{"21"});
}

TEST_CASE("a lane that is new, and its ring over two laps") {
  const weak_memory::WatchedSession watched;
  constexpr std::uint32_t kSlots = 4;
  std::uint32_t number = 0;
  session::RingWriter ring;
  const auto append = [&](std::uint64_t event) {
    ring.append(7, 3, EventKind::allocate, Api::malloc, event * 16, event, 1);
  };
  weak_memory::write(1, [&] {
    number = g_session.acquire_lane(kHook, 1, 1);
    session::Lane& lane = g_session.lanes.at(number);
    lane.ring_slots = kSlots;
    ring.use(lane, g_session.ring(number));
    append(1);
    append(2);
  });
  // Before anything else is settled: the entry may be there without its ring.
  weak_memory::read([&] {
    session::Lane lane;
    if (!g_session.view().read(TableId::lanes, number, lane)) return;
    g_session.view().for_each_sum([](const session::View::PendingSum&) { FAIL("a sum"); });
    session::Event event;
    if (g_session.view().event(lane, 1, event)) CHECK(event.address == event.bytes * 16);
  });
  weak_memory::settle();
  weak_memory::write(1, [&] {
    for (std::uint64_t event = 3; event <= 6; ++event) append(event);
  });
  session::Lane lane;
  REQUIRE(g_session.view().read(TableId::lanes, number, lane));
  const std::uint64_t end = lane.ring_next;
  std::set<std::uint64_t> seen;
  weak_memory::read([&] {
    for (std::uint64_t slot = end - kSlots; slot < end; ++slot) {
      session::Event event;
      if (!g_session.view().event(lane, slot, event) || event.is_stamp()) continue;
      CHECK(event.address == event.bytes * 16);
      CHECK(event.time_ms == 7);
      CHECK(event.thread == 3);
      seen.insert(event.bytes);
    }
  });
  CHECK(seen == std::set<std::uint64_t>{4, 5, 6});
}

TEST_CASE("the state of a process that has ended, and its status") {
  const weak_memory::WatchedSession watched;
  weak_memory::write(1, [] { g_session.mark(kHook, session::State::exited, 9); });
  bool ended = false;
  weak_memory::read([&] {
    const session::Header& header = g_session.view().header();
    if (header.state.load(acquire) != static_cast<std::uint32_t>(session::State::exited)) return;
    CHECK(header.exit_status.load(relaxed) == 9);
    ended = true;
  });
  CHECK(ended);
}

TEST_CASE("an index that grows while another thread searches it") {
  using Index = session::Index<session::Outgrown::keep>;
  static constinit Index index;
  const weak_memory::WatchedSession watched{index};
  const auto add = [&](std::uint32_t key) {
    std::uint32_t number = 0;
    g_session.holders.append(kHook, number, [&](session::HolderEntry& entry) {
      entry.node = key;
      entry.api = 7;
    });
    REQUIRE(index.insert(kHook, session::mix(key), number));
  };
  constexpr std::uint32_t kFits = 192;  // 3/4 of the first 256 slots
  for (std::uint32_t key = 1; key <= kFits; ++key) add(key);
  weak_memory::settle();
  weak_memory::write(1, [&] { add(kFits + 1); });
  weak_memory::write(2, [&] { add(kFits + 2); });
  std::set<std::uint32_t> seen;
  for (const std::uint32_t key : {1u, kFits, kFits + 1, kFits + 2}) {
    weak_memory::read([&] {
      const std::uint32_t number = index.find(session::mix(key), [&](std::uint32_t at) {
        return g_session.holders.at(at).node == key;
      });
      CHECK((number != 0 || key > kFits));  // what was there before stays there
      if (number != 0) CHECK(g_session.holders.at(number).api == 7);
      if (number != 0) seen.insert(key);
    });
  }
  CHECK(seen == std::set<std::uint32_t>{1, kFits, kFits + 1, kFits + 2});
}

TEST_CASE("the first holders of a piece of nodes") {
  static constinit live::NodeMap map;
  const weak_memory::WatchedSession watched{map};
  const auto add = [&](std::uint32_t node) {
    std::uint32_t number = 0;
    g_session.holders.append(kHook, number,
                             [&](session::HolderEntry& entry) { entry.node = node; });
    REQUIRE((map.prepare(kHook, node, number) && map.insert(node, number)));
  };
  add(9000);  // in another piece
  weak_memory::settle();
  weak_memory::write(1, [&] { add(40); });
  weak_memory::write(2, [&] { add(41); });
  std::set<std::uint32_t> seen;
  for (const std::uint32_t node : {40u, 41u, 42u}) {
    weak_memory::read([&] {
      const std::uint32_t number = map.find(node);
      if (number == 0) return;
      CHECK(g_session.holders.at(number).node == node);
      seen.insert(node);
    });
  }
  CHECK(seen == std::set<std::uint32_t>{40, 41});
}

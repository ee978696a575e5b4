// A reader in another process finds a holder as it is, with the figures of its own stack, or not at
// all, while the holder is forgotten and its numbers are used for another stack.
#include <doctest/doctest.h>

#include <set>
#include <string>

#include "recorder/live/holder_sums.h"
#include "recorder/live/holder_table.h"
#include "recorder/session/node_states.h"
#include "tests/unit/weak_memory/watched_session.h"

using namespace oomrec;
using session::g_session;
using session::TableId;
using weak_memory::kHook;

namespace {

constexpr auto relaxed = std::memory_order_relaxed;

// Two stacks, which differ in all figures.
constexpr std::uint32_t kFirst = 5, kSecond = 6;
constexpr std::uint64_t total_of(std::uint32_t node) { return 48 * node; }

live::HolderTable g_table;

// A full one has a block for a moment at least, which makes it one of the largest; a brief one none
// at any time.
std::uint32_t find_or_add(std::uint32_t node, bool full) {
  const std::uint32_t number = g_table.find_or_add_brief(kHook, node, Space::heap, Api::malloc);
  REQUIRE(number != 0);
  const std::uint64_t bytes = total_of(node);
  REQUIRE(g_table.add(kHook, number, {bytes, full ? 0 : bytes, 1, full ? 0u : 1u, 0}));
  return number;
}
std::uint32_t add_empty(std::uint32_t node, bool full) {
  const std::uint32_t number = find_or_add(node, full);
  if (full) REQUIRE(g_table.add(kHook, number, {0, total_of(node), 0, 1, 0}));
  return number;
}
void remove(std::uint32_t node) {
  g_table.remove(kHook, node, false, [&](const live::HolderTable::Forgotten& forgotten) {
    CHECK(forgotten.total_bytes == total_of(node));
  });
}

// What a reader finds in the entry: a node, and `+` if it has a block.
std::string holder_seen(std::uint32_t number) {
  session::Holder holder;
  REQUIRE(g_session.view().read(TableId::holders, number, holder));
  const std::uint64_t total = holder.total_bytes, live = holder.live_bytes;
  if (holder.node == 0) {
    CHECK((total == 0 && live == 0));
    return "0";
  }
  const std::uint64_t wanted = total_of(holder.node);
  const bool is_whole = holder.node == kFirst
                            ? total == wanted && live == 0
                            : (total == 0 || total == wanted) && (live == 0 || live == wanted);
  return is_whole ? std::to_string(holder.node) + (live != 0 ? "+" : "") : "?";
}
std::set<std::string> all_seen(bool second_full) {
  return second_full ? std::set<std::string>{"0", "5", "6", "6+"}
                     : std::set<std::string>{"0", "5", "6"};
}

}  // namespace

TEST_CASE("a holder that is forgotten, and used for another stack by another thread") {
  for (const bool first_full : {false, true}) {
    for (const bool second_full : {false, true}) {
      const weak_memory::WatchedSession watched{g_table};
      weak_memory::watch_globals();
      const std::uint32_t number = add_empty(kFirst, first_full);
      weak_memory::settle();
      weak_memory::write(1, [] { remove(kFirst); });
      weak_memory::write(2, [&] { REQUIRE(find_or_add(kSecond, second_full) == number); });
      std::set<std::string> seen;
      weak_memory::read([&] { seen.insert(holder_seen(number)); });
      CHECK(seen == all_seen(second_full));
    }
  }
}

TEST_CASE("the same, by a writer that was killed") {
  for (const bool full : {false, true}) {
    const weak_memory::WatchedSession watched{g_table};
    weak_memory::watch_globals();
    const std::uint32_t number = add_empty(kFirst, full);
    weak_memory::settle();
    weak_memory::write(1, [&] {
      remove(kFirst);
      REQUIRE(find_or_add(kSecond, full) == number);
    });
    std::set<std::string> seen;
    weak_memory::read_after_each_store([&] { seen.insert(holder_seen(number)); });
    CHECK(seen == all_seen(full));
  }
}

TEST_CASE("a full holder that is used again under its name, while another stack has its entry") {
  const weak_memory::WatchedSession watched{g_table};
  weak_memory::watch_globals();
  const std::uint32_t number = add_empty(kFirst, true);
  add_empty(kSecond, false);
  const std::uint32_t entry = session::full_number(g_session.holders.at(number).figures);
  weak_memory::settle();
  weak_memory::write(1, [] { remove(kFirst); });
  weak_memory::write(2, [] { find_or_add(kSecond, true); });
  weak_memory::write(1, [&] { REQUIRE(find_or_add(kFirst, true) == number); });
  REQUIRE(session::full_number(g_session.holders.at(number).figures) != entry);
  std::set<std::uint64_t> seen;
  weak_memory::read([&] {
    session::Holder holder;
    REQUIRE(g_session.view().read(TableId::holders, number, holder));
    CHECK((holder.node == 0 || holder.node == kFirst));
    for (const std::uint64_t bytes :
         {holder.total_bytes.load(relaxed), holder.live_bytes.load(relaxed)})
      seen.insert(bytes);
  });
  CHECK(seen == std::set<std::uint64_t>{0, total_of(kFirst)});
}

TEST_CASE("whoever sees that a sum has another node sees what its holder has got") {
  const weak_memory::WatchedSession watched{g_table, session::g_node_states};
  weak_memory::watch_globals();
  session::Lane& lane = g_session.lanes.at(g_session.acquire_lane(kHook, 1, 1));
  const std::uint32_t number = 1;
  session::HolderSum* const of_lane = g_session.sums(number);
  live::HolderSums sums;
  sums.use(lane, of_lane, g_session.temporaries(number));
  const std::uint32_t other = kFirst + lane.sums;  // in the same slot
  REQUIRE(sums.grow(kHook, g_table, kFirst, Api::malloc, 48));
  REQUIRE(sums.grow(kHook, g_table, other, Api::malloc, 48));
  sums.shrink(kHook, g_table, other, 48, false);
  sums.shrink(kHook, g_table, kFirst, 48, false);
  sums.flush(kHook, g_table);
  g_table.candidates().drop_empty();
  REQUIRE(g_table.of_node(kFirst) != live::HolderTable::Has::needed);
  std::uint32_t seen = 0;
  bool empty = false;
  REQUIRE(sums.grow(kHook, g_table, kFirst, Api::malloc, 48));
  weak_memory::meet({[&] { sums.grow(kHook, g_table, other, Api::malloc, 48); },
                     [&] {
                       seen =
                           of_lane[kFirst & (lane.sums - 1)].node.load(std::memory_order_acquire);
                       empty = g_table.of_node(kFirst) != live::HolderTable::Has::needed;
                     }},
                    [&] { CHECK((seen == kFirst || !empty)); });
}

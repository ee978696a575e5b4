// The numbers of holders by node, also of those far from their neighbours'.
#include "recorder/live/node_map.h"

#include <doctest/doctest.h>

#include <map>

#include "recorder/live/holder_table.h"
#include "tests/unit/recorder/session/fixtures.h"

using namespace oomrec;
using namespace oomrec::live;
using session::g_session;

TEST_CASE("a piece of nodes keeps numbers near each other, and says which are elsewhere") {
  static constinit NodeMap map;
  const InHook hook = session::kHook;
  CHECK(map.find(7) == 0);
  REQUIRE(map.prepare(hook, 7, 1000));
  REQUIRE(map.insert(7, 1000));
  REQUIRE(map.prepare(hook, 8, 1000 + 65'533));
  CHECK(map.insert(8, 1000 + 65'533));
  CHECK_FALSE(map.insert(9, 1000 + 65'534));
  CHECK(map.find(9) == 0);
  map.insert_elsewhere(9);
  CHECK(map.find(7) == 1000);
  CHECK(map.find(8) == 1000 + 65'533);
  CHECK(map.find(9) == NodeMap::kElsewhere);
  REQUIRE(map.prepare(hook, 4096, 200'000));
  REQUIRE(map.insert(4096, 200'000));
  CHECK(map.find(4096) == 200'000);
  CHECK(map.find(4097) == 0);
  map.reset(hook);
  CHECK(map.find(7) == 0);
}

TEST_CASE("each node has one holder, whenever it got it") {
  const session::Scratch scratch;
  session::Settings settings;
  settings.mode = Mode::exact;
  settings.session_directory = scratch.path();
  settings.budget_bytes = std::uint64_t{64} << 20;
  REQUIRE(g_session.create(session::kHook, settings));
  static constinit HolderTable holders;
  const auto holder_of = [](std::uint32_t node) {
    return holders.find_or_add_brief(session::kHook, node, Space::heap, Api::malloc);
  };
  std::map<std::uint32_t, std::uint32_t> numbers;
  for (std::uint32_t node = 1; node < 150'000; node += node < 1000 ? 10 : 1)
    numbers[node] = holder_of(node);
  for (std::uint32_t node = 1; node < 1000; ++node) numbers[node] = holder_of(node);  // far
  std::uint32_t wrong = 0;
  for (const auto& [node, number] : numbers)
    wrong += number == 0 || holder_of(node) != number || g_session.holders.at(number).node != node;
  CHECK(wrong == 0);
  CHECK(g_session.holders.size() == numbers.size() + 1);
}

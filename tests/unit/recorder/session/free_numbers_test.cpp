// Which numbers are free, and which nodes are in use: both decide what may be used again.
#include "recorder/session/free_numbers.h"

#include <doctest/doctest.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <random>
#include <set>
#include <thread>

#include "recorder/session/node_states.h"

using namespace oomrec;
using session::FreeNumbers;
using session::g_era;
using session::NodeStates;

namespace {

const InHook kHook = OutsideHooks::in_hook();

constexpr std::uint32_t kMost = FreeNumbers::kMost;
// First numbers of a word, of a word of words, and of a part.
constexpr std::uint32_t kWord = 64, kSummary = 64 * 64, kPart = 64 * 64 * 64;

constinit FreeNumbers g_free;
constinit NodeStates g_states;

std::uint32_t lowest_from(const std::set<std::uint32_t>& numbers, std::uint32_t least) {
  const auto found = numbers.lower_bound(least);
  return found == numbers.end() ? 0 : *found;
}

// A new node of era `era`, in the era `now`. Returns its word.
NodeStates::Word node_of_era(std::uint32_t node, std::uint32_t era, std::uint32_t now) {
  g_era = era;
  REQUIRE(g_states.prepare(kHook, node));
  g_states.add(node, 0);
  g_era = now;
  return g_states.load(node);
}

}  // namespace

TEST_CASE("the lowest free number from a given one on, as a set finds it") {
  std::mt19937 generator(5);
  const auto random = [&] { return static_cast<std::uint32_t>(generator()); };
  // Few numbers, so that words and parts become empty, and some around each kind of boundary.
  const auto any_number = [&]() -> std::uint32_t {
    constexpr std::array kBoundaries{1u,
                                     kWord,
                                     kSummary,
                                     kSummary + kWord,
                                     kPart,
                                     kPart + kWord,
                                     3 * kPart,
                                     kMost - kPart,
                                     kMost - kWord,
                                     kMost};
    if (random() % 4 == 0) return 1 + random() % (kMost - 1);
    const std::uint32_t boundary = kBoundaries[random() % kBoundaries.size()];
    const std::uint32_t number = boundary - 3 + random() % 6;
    return number == 0 || number >= kMost ? kMost - 1 : number;
  };
  for (unsigned round = 0; round < 20; ++round) {
    std::set<std::uint32_t> oracle;
    const unsigned gives = 2 + round % 3;  // of 5: the set stays small, or grows
    for (int i = 0; i < 20'000; ++i) {
      if (random() % 5 < gives) {
        const std::uint32_t number = any_number();
        if (!oracle.insert(number).second) continue;
        REQUIRE(g_free.give_back(kHook, number));
      } else {
        const std::uint32_t least = random() % 8 == 0 ? random() % (kMost + 1) : any_number();
        const std::uint32_t expected = lowest_from(oracle, least);
        REQUIRE(g_free.take(least) == expected);
        oracle.erase(expected);
      }
      REQUIRE(g_free.count() == oracle.size());
    }
    if (round % 2 == 0) {  // all of them, in order
      for (; !oracle.empty(); oracle.erase(oracle.begin()))
        REQUIRE(g_free.take(1) == *oracle.begin());
      REQUIRE(g_free.take(1) == 0);
    } else {
      g_free.reset(kHook);
    }
    CHECK(g_free.count() == 0);
  }
}

TEST_CASE("numbers at each end of the last part") {
  CHECK(g_free.take(1) == 0);
  REQUIRE(g_free.give_back(kHook, kMost - 1));
  CHECK(g_free.take(kMost) == 0);  // the trie's last node looks for a child
  CHECK(g_free.take(kMost - 1) == kMost - 1);
  REQUIRE(g_free.give_back(kHook, kMost - 1));
  CHECK(g_free.take(1) == kMost - 1);
  CHECK(!g_free.give_back(kHook, kMost));
  REQUIRE(g_free.give_back(kHook, kMost - kPart));
  CHECK(g_free.take(kMost - kPart + 1) == 0);
  CHECK(g_free.take(kMost - kPart) == kMost - kPart);
  CHECK(g_free.count() == 0);
}

TEST_CASE("a node is retired, or claimed, or referred to: whoever is first") {
  constexpr std::uint32_t kNode = 5000;
  const NodeStates::Word claimed = node_of_era(kNode, 10, 13);
  REQUIRE(NodeStates::is_idle(claimed, 13));
  CHECK(g_states.claim(kNode, claimed));
  CHECK(!NodeStates::is_idle(g_states.load(kNode), 13));
  CHECK(!g_states.retire(kNode, claimed));
  CHECK(g_states.load(kNode) != 0);

  const NodeStates::Word referred = node_of_era(kNode, 10, 13);
  g_states.refer(kNode);
  CHECK(!NodeStates::is_idle(g_states.load(kNode), 13));
  CHECK(!g_states.retire(kNode, referred));
  g_states.release(kNode);
  CHECK(NodeStates::is_idle(g_states.load(kNode), 13));

  const NodeStates::Word retired = node_of_era(kNode, 10, 13);
  CHECK(g_states.retire(kNode, retired));
  CHECK(!g_states.claim(kNode, retired));
  CHECK(g_states.load(kNode) == 0);

  // A node that was claimed in this era, or in the next one by a faster thread, needs no change.
  const NodeStates::Word fresh = node_of_era(kNode, 13, 13);
  CHECK(g_states.claim(kNode, fresh));
  CHECK(g_states.load(kNode) == fresh);
  const NodeStates::Word newer = node_of_era(kNode, 14, 13);
  CHECK(g_states.claim(kNode, newer));
  CHECK(g_states.load(kNode) == newer);
}

TEST_CASE("the same, by two threads at once") {
  constexpr std::uint32_t kNode = 1;
  constexpr int kRounds = 3000;
  NodeStates::Word seen = node_of_era(kNode, 10, 13);
  bool claimed = false;
  std::atomic<int> begun{0}, claimer_done{0};
  int claims = 0, wrong = 0;
  const auto pause = [](int steps) {
    for (int i = 0; i < steps; ++i) std::atomic_signal_fence(std::memory_order_seq_cst);
  };
  std::thread claimer{[&] {
    for (int round = 1; round <= kRounds; ++round) {
      while (begun < round) std::this_thread::yield();
      pause(round % 100);
      claimed = g_states.claim(kNode, seen);
      claimer_done = round;
    }
  }};
  for (int round = 1; round <= kRounds; ++round) {
    seen = node_of_era(kNode, 10, 13);
    begun = round;
    pause(round / 100 % 10 * 200);
    const bool retired = g_states.retire(kNode, seen);
    while (claimer_done < round) std::this_thread::yield();
    wrong += claimed == retired || retired != (g_states.load(kNode) == 0);
    claims += claimed;
  }
  claimer.join();
  CHECK(wrong == 0);
  MESSAGE("claimed " << claims << " of " << kRounds);
}

TEST_CASE("nothing brings back a node that is not in use") {
  constexpr std::uint32_t kNode = 7;
  REQUIRE(g_states.retire(kNode, node_of_era(kNode, 10, 13)));
  const auto is_out_of_use = [](std::uint32_t node) {
    g_states.touch(node);
    g_states.refer(node);
    g_states.release(node);
    g_states.set(node, NodeStates::kFrozen | NodeStates::kHasOthers);
    g_states.clear(node, NodeStates::kFrozen);
    return g_states.load(node) == 0 && !NodeStates::is_idle(g_states.load(node), 13);
  };
  CHECK(is_out_of_use(kNode));
  CHECK(is_out_of_use(kNode + 1));              // never added
  CHECK(is_out_of_use(NodeStates::kMost - 1));  // not even prepared
  CHECK(is_out_of_use(NodeStates::kMost));
}

TEST_CASE("a node is idle once no thread has found it for two eras") {
  constexpr std::uint32_t kNode = 9;
  for (const std::uint32_t era : {1u, 200u, 253u, 254u, 255u, 256u, 509u, 510u, ~0u - 1}) {
    CAPTURE(era);
    const NodeStates::Word word = node_of_era(kNode, era, era);
    CHECK(word != 0);
    CHECK(!NodeStates::is_idle(word, era));
    CHECK(!NodeStates::is_idle(word, era + 1));
    CHECK(NodeStates::is_idle(word, era + 2));
    CHECK(NodeStates::is_idle(word, era + 200));

    g_era = era + 1;  // found again
    g_states.touch(kNode);
    const NodeStates::Word touched = g_states.load(kNode);
    CHECK(!NodeStates::is_idle(touched, era + 2));
    if (era < 1000) CHECK(NodeStates::is_idle(touched, era + 3));
  }
}

TEST_CASE("a frozen node is never idle, and thaws as it was") {
  constexpr std::uint32_t kNode = 11;
  const NodeStates::Word word = node_of_era(kNode, 10, 13);
  g_states.set(kNode, NodeStates::kHasOthers);
  g_states.set(kNode, NodeStates::kFrozen);
  for (std::uint32_t era = 10; era < 600; ++era)
    REQUIRE(!NodeStates::is_idle(g_states.load(kNode), era));
  CHECK(!g_states.retire(kNode, word));
  g_states.clear(kNode, NodeStates::kFrozen);
  CHECK(g_states.load(kNode) == (word | NodeStates::kHasOthers));
  CHECK(NodeStates::is_idle(g_states.load(kNode), 13));
}

TEST_CASE("more references than can be counted keep the node, and its other bits") {
  constexpr std::uint32_t kNode = 13;
  const NodeStates::Word word = node_of_era(kNode, 10, 13);
  const NodeStates::Word many = word | NodeStates::kManyReferences;
  for (std::uint32_t i = 0; i < NodeStates::kManyReferences - 1; ++i) g_states.refer(kNode);
  CHECK(g_states.load(kNode) == many - 1);
  g_states.release(kNode);
  g_states.refer(kNode);
  CHECK(g_states.load(kNode) == many - 1);
  for (int i = 0; i < 3; ++i) {
    g_states.refer(kNode);
    CHECK(g_states.load(kNode) == many);
  }
  for (int i = 0; i < 5; ++i) g_states.release(kNode);
  CHECK(g_states.load(kNode) == many);
  CHECK(!NodeStates::is_idle(g_states.load(kNode), 13));
}

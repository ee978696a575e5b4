// Which addresses have a recorded object: compared with std::set, and spans that share a place.
#include "recorder/live/object_bits.h"

#include <doctest/doctest.h>

#include <random>
#include <set>

using namespace oomrec;
using namespace oomrec::live;

namespace {

const InHook kHook = OutsideHooks::in_hook();
constinit ObjectBits g_bits;

}  // namespace

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

// Rules as they are packed, and the table that keeps them.
#include "recorder/stack/rules.h"

#include <vector>

#include "recorder/stack/modules.h"

#include <doctest/doctest.h>

namespace oomrec::stack {
namespace {

const InHook kHook = OutsideHooks::in_hook();

Rule step(CfaBase cfa, std::int32_t cfa_offset, BpPlace bp = BpPlace::unchanged,
          std::int16_t bp_offset = 0) {
  return {RuleKind::step, cfa, bp, bp_offset, cfa_offset};
}

PackedRule frame_of(unsigned words) { return PackedRule(step(CfaBase::sp, 8 * int(words))); }

TEST_CASE("a packed rule is the rule, for all that compilers make") {
  for (const Rule& rule : {step(CfaBase::sp, 8), step(CfaBase::sp, 1 << 20 >> 1),
                           step(CfaBase::sp, 48, BpPlace::cfa_cell, -48),
                           step(CfaBase::bp, 16, BpPlace::cfa_cell, -16),
                           step(CfaBase::bp_cell, -8, BpPlace::bp_cell, 0),
                           step(CfaBase::bp_cell, -40, BpPlace::lost)}) {
    const PackedRule packed(rule);
    REQUIRE(packed.is_step());
    CHECK(packed.unpack() == rule);
    CHECK(packed.is_plain() == (rule.cfa == CfaBase::sp));
    CHECK(packed.is_framed() == (rule.cfa == CfaBase::bp));
  }
  CHECK_FALSE(PackedRule{}.known());
  for (const RuleKind kind :
       {RuleKind::no_information, RuleKind::end, RuleKind::signal, RuleKind::unsupported}) {
    const PackedRule packed(Rule{.kind = kind});
    CHECK(packed.known());
    CHECK_FALSE(packed.is_step());
    CHECK_FALSE(packed.is_plain());
    CHECK_FALSE(packed.is_framed());
    CHECK(packed.kind() == kind);
  }
}

TEST_CASE("a rule that does not fit, or would have a plain step read outside its frame, says so") {
  for (const Rule& rule :
       {step(CfaBase::sp, 1 << 20), step(CfaBase::sp, 12), step(CfaBase::sp, 0),
        step(CfaBase::sp, 32, BpPlace::cfa_cell, -40), step(CfaBase::sp, 32, BpPlace::cfa_cell, -8),
        step(CfaBase::bp, 16, BpPlace::cfa_cell, -8),
        step(CfaBase::sp, 8192, BpPlace::cfa_cell, -4096)}) {
    const PackedRule packed(rule);
    CHECK(packed.known());
    CHECK_FALSE(packed.is_step());
    CHECK_FALSE(packed.is_plain());
    CHECK(packed.kind() == RuleKind::step);
  }
}

// Addresses that are first looked for in the same place of the table.
std::vector<std::uint64_t> rivals(std::size_t count) {
  std::vector<std::uint64_t> found;
  const std::uint64_t place = RuleKey(0x7f00'0000'1000).place();
  for (std::uint64_t address = 0x5555'0000'0000; found.size() < count; ++address) {
    if (RuleKey(address).place() == place) found.push_back(address);
  }
  return found;
}

TEST_CASE("an entry is taken for its own address's only") {
  for (const std::uint64_t address : rivals(40)) {
    const std::uint64_t entry = RuleKey(address).entry_of(frame_of(3));
    for (const std::uint64_t other : rivals(40)) {
      CHECK(RuleKey(other).rule_in(entry).known() == (other == address));
    }
    CHECK(RuleKey(address).rule_in(entry).bits() == frame_of(3).bits());
    CHECK_FALSE(RuleKey(address).rule_in(0).known());
  }
}

TEST_CASE("the table finds what it holds, wherever in the bucket, and compiles the rest anew") {
  const std::uint64_t ways = 1u << kWayBits;
  const std::vector<std::uint64_t> addresses = rivals(ways);
  for (std::uint64_t way = 0; way < ways; ++way) {
    const RuleKey key(addresses[way]);
    g_rules[key.place() ^ way].store(key.entry_of(frame_of(unsigned(way) + 1)));
  }
  for (std::uint64_t way = 0; way < ways; ++way) {
    CHECK(rule_at(kHook, addresses[way]).bits() == frame_of(unsigned(way) + 1).bits());
  }
  CHECK(quick_rule_at(addresses[0]).known());
  CHECK_FALSE(quick_rule_at(addresses[1]).known());

  clear_rules(kHook);
  CHECK(rule_at(kHook, addresses[3]).kind() == RuleKind::no_information);
}

TEST_CASE("an address that no module has is asked about again, one that has is remembered") {
  start_modules(kHook);
  clear_rules(kHook);
  const auto here = reinterpret_cast<std::uint64_t>(&rivals);
  CHECK(rule_at(kHook, here).is_step());
  CHECK(quick_rule_at(here).bits() == rule_at(kHook, here).bits());
  CHECK(rule_at(kHook, 0x1000).kind() == RuleKind::no_information);
  CHECK_FALSE(quick_rule_at(0x1000).known());
  CHECK_FALSE(quick_rule_at(here | std::uint64_t{1} << 60).known());
  CHECK(rule_at(kHook, here | std::uint64_t{1} << 60).kind() == RuleKind::no_information);
}

}  // namespace
}  // namespace oomrec::stack

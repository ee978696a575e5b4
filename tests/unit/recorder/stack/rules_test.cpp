// Packed unwind rules, and their table.
#include "recorder/stack/rules.h"

#include <dlfcn.h>
#include <sys/resource.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <span>
#include <vector>

#ifdef __aarch64__
#include "common/machine/linkage_table.h"
#endif
#include "recorder/stack/modules.h"

#include <doctest/doctest.h>

namespace oomrec::stack {
namespace {

const InHook kHook = OutsideHooks::in_hook();

// Where the function stores the return address, it is above bp, or alone at the end of the frame.
Rule step(CfaBase cfa, std::int32_t cfa_offset, BpLocation bp = BpLocation::unchanged,
          std::int32_t bp_offset = 0) {
  Rule rule{RuleKind::step, cfa, bp, bp_offset, cfa_offset};
  if constexpr (!machine::kCallStoresReturn) {
    if (bp == BpLocation::unchanged) rule.bp_offset = -cfa_offset;
    rule.return_offset = rule.bp_offset + (bp == BpLocation::unchanged ? 0 : 8);
  }
  return rule;
}

PackedRule frame_of(unsigned words) { return PackedRule(step(CfaBase::sp, 8 * int(words))); }

TEST_CASE("packing keeps every rule that compilers emit") {
  std::vector<Rule> rules = {step(CfaBase::sp, 8), step(CfaBase::sp, (1 << 18) - 8),
                             step(CfaBase::sp, 48, BpLocation::cfa_cell, -48),
                             step(CfaBase::sp, 4096, BpLocation::cfa_cell, -3584),
                             step(CfaBase::bp, 16, BpLocation::cfa_cell, -16)};
  if constexpr (machine::kCallStoresReturn) {
    rules[3] = step(CfaBase::bp_cell, -8, BpLocation::bp_cell, 0);
    rules.push_back(step(CfaBase::bp_cell, -40, BpLocation::lost));
  }
  for (const Rule& rule : rules) {
    const PackedRule packed(rule);
    REQUIRE(packed.is_step());
    CHECK(packed.unpack() == rule);
    CHECK(packed.is_plain() == (rule.cfa == CfaBase::sp));
    CHECK(packed.is_framed() == (rule.cfa == CfaBase::bp));
  }
  CHECK_FALSE(PackedRule{}.present());
  for (const RuleKind kind :
       {RuleKind::no_information, RuleKind::end, RuleKind::signal, RuleKind::unsupported}) {
    const PackedRule packed(Rule{.kind = kind});
    CHECK(packed.present());
    CHECK_FALSE(packed.is_step());
    CHECK_FALSE(packed.is_plain());
    CHECK_FALSE(packed.is_framed());
    CHECK(packed.kind() == kind);
  }
}

TEST_CASE("rules that do not fit, or read outside their frame, are detected") {
  for (const Rule& rule : {step(CfaBase::sp, 1 << 20), step(CfaBase::sp, 12), step(CfaBase::sp, 0),
                           step(CfaBase::sp, 32, BpLocation::cfa_cell, -40),
                           step(CfaBase::sp, 32, BpLocation::cfa_cell, -8),
                           step(CfaBase::bp, 16, BpLocation::cfa_cell, -8),
                           step(CfaBase::sp, 8192, BpLocation::cfa_cell, -4096)}) {
    const PackedRule packed(rule);
    CHECK(packed.present());
    CHECK_FALSE(packed.is_step());
    CHECK_FALSE(packed.is_plain());
    CHECK(packed.kind() == RuleKind::step);
  }
}

// Addresses that hash to the same slot of the table.
std::vector<std::uint64_t> rivals(std::size_t count) {
  std::vector<std::uint64_t> found;
  const std::uint64_t place = RuleKey(0x7f00'0000'1000).first_slot(g_small_rules);
  for (std::uint64_t address = 0x5555'0000'0000; found.size() < count; ++address) {
    if (RuleKey(address).first_slot(g_small_rules) == place) found.push_back(address);
  }
  return found;
}

TEST_CASE("an entry is found by its own address only") {
  for (const std::uint64_t address : rivals(40)) {
    const std::uint64_t entry = RuleKey(address).entry_of(frame_of(3));
    for (const std::uint64_t other : rivals(40)) {
      CHECK(RuleKey(other).rule_in(entry).present() == (other == address));
    }
    CHECK(RuleKey(address).rule_in(entry).bits() == frame_of(3).bits());
    CHECK_FALSE(RuleKey(address).rule_in(0).present());
  }
}

TEST_CASE("the table finds entries anywhere in the bucket, and compiles missing ones") {
  const std::uint64_t ways = 1u << kWayBits;
  const std::vector<std::uint64_t> addresses = rivals(ways);
  for (std::uint64_t way = 0; way < ways; ++way) {
    const RuleKey key(addresses[way]);
    g_small_rules[key.first_slot(g_small_rules) ^ way].store(
        key.entry_of(frame_of(unsigned(way) + 1)));
  }
  for (std::uint64_t way = 0; way < ways; ++way) {
    CHECK(rule_at(kHook, addresses[way]).bits() == frame_of(unsigned(way) + 1).bits());
  }
  CHECK(quick_rule_at(addresses[0]).present());
  CHECK_FALSE(quick_rule_at(addresses[1]).present());

  clear_rules(kHook);
  CHECK(rule_at(kHook, addresses[3]).kind() == RuleKind::no_information);
}

// Of its caller: the frame there has its return address on the stack, on every machine.
[[gnu::noinline]] std::uint64_t address_of_call() {
  return reinterpret_cast<std::uint64_t>(__builtin_return_address(0)) - 1;
}

TEST_CASE("only addresses inside a module are cached") {
  start_modules(kHook);
  clear_rules(kHook);
  const std::uint64_t here = address_of_call();
  CHECK(rule_at(kHook, here).is_step());
  CHECK(quick_rule_at(here).bits() == rule_at(kHook, here).bits());
  CHECK(rule_at(kHook, 0x1000).kind() == RuleKind::no_information);
  CHECK_FALSE(quick_rule_at(0x1000).present());
  CHECK_FALSE(quick_rule_at(here | std::uint64_t{1} << 60).present());
  CHECK(rule_at(kHook, here | std::uint64_t{1} << 60).kind() == RuleKind::no_information);
}

// Addresses of a library. Most are inside of instructions, which does not matter here.
std::vector<std::uint64_t> addresses_of_libc(std::size_t count) {
  const auto some = reinterpret_cast<std::uint64_t>(dlsym(RTLD_DEFAULT, "qsort"));
  std::vector<std::uint64_t> found;
  for (std::uint64_t i = 0; i < count; ++i) found.push_back(some - count / 2 + i);
  return found;
}

bool in_table(std::uint64_t address) {
  const RuleSlot* const table = g_rules.load();
  const RuleKey key(address);
  for (std::uint64_t way = 0; way < 1u << kWayBits; ++way)
    if (key.rule_in(table[key.first_slot(table) ^ way].load()).present()) return true;
  return false;
}

TEST_CASE("without address space for a large table the small one goes on") {
  start_modules(kHook);
  clear_rules(kHook);
  const std::vector<std::uint64_t> addresses = addresses_of_libc(100'000);
  rlimit before{};
  REQUIRE(getrlimit(RLIMIT_AS, &before) == 0);
  const rlimit none{.rlim_cur = 1 << 20, .rlim_max = before.rlim_max};
  REQUIRE(setrlimit(RLIMIT_AS, &none) == 0);
  for (const std::uint64_t address : addresses) rule_at(kHook, address);
  CHECK(setrlimit(RLIMIT_AS, &before) == 0);
  CHECK(g_rules.load() == g_small_rules);
  const std::uint64_t here = address_of_call();
  CHECK(rule_at(kHook, here).is_step());
  CHECK(in_table(here));
}

TEST_CASE("a table that is half full is replaced by a large one with its rules") {
  start_modules(kHook);
  clear_rules(kHook);
  const std::vector<std::uint64_t> addresses = addresses_of_libc(40'000);
  std::vector<std::uint32_t> rules;
  for (const std::uint64_t address : addresses) rules.push_back(rule_at(kHook, address).bits());
  CHECK(std::set(rules.begin(), rules.end()).size() > 10);

  REQUIRE(g_rules.load() != g_small_rules);
  std::size_t kept = 0;
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    kept += in_table(addresses[i]);
    CHECK(rule_at(kHook, addresses[i]).bits() == rules[i]);
  }
  // Few were evicted from full buckets of the small table.
  CHECK(kept > addresses.size() * 9 / 10);
  CHECK(std::none_of(std::begin(g_small_rules), std::end(g_small_rules),
                     [](const RuleSlot& slot) { return slot.load() != 0; }));

  clear_rules(kHook);
  CHECK(std::none_of(addresses.begin(), addresses.end(), in_table));
}

#ifdef __aarch64__
TEST_CASE("each instruction of this program's linkage table has a rule") {
  start_modules(kHook);
  const auto here = reinterpret_cast<std::uint64_t>(&address_of_call);
  const AddressRange text =
      loaded_module(module_slot_at(kHook, here)).segment_at(here, PF_R | PF_X);
  const std::span<const machine::CodeWord> code(
      reinterpret_cast<const machine::CodeWord*>(text.start),
      reinterpret_cast<const machine::CodeWord*>(text.end));
  unsigned found = 0;
  unsigned after_push = 0;
  for (std::size_t at = 0; at < code.size(); ++at) {
    const auto pushed = machine::pushed_by_linkage(code, at);
    if (!pushed) continue;
    const auto address = reinterpret_cast<std::uint64_t>(&code[at]);
    CHECK(rule_at(kHook, address).kind() == RuleKind::step);
    CHECK(whole_rule_at(kHook, address) == Rule{.kind = RuleKind::step,
                                                .cfa_offset = *pushed,
                                                .return_location = ReturnLocation::link});
    ++found;
    after_push += *pushed != 0;
  }
  CHECK(found > 40);
  CHECK(after_push == 4);
}
#endif

}  // namespace
}  // namespace oomrec::stack

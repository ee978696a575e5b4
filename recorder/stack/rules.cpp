#include "recorder/stack/rules.h"

#include "recorder/stack/self_check.h"

namespace oomrec::stack {

alignas(64) constinit std::atomic<std::uint64_t> g_rules[1u << kTableBits] = {};

namespace {

constexpr Rule kSample{RuleKind::step, CfaBase::bp_cell, BpLocation::bp_cell, -16, -8};
static_assert(PackedRule(kSample).unpack() == kSample);
static_assert(PackedRule(Rule{}).kind() == RuleKind::no_information);

constexpr std::uint64_t kWays = 1u << kWayBits;

PackedRule find(const RuleKey& key) noexcept {
  for (std::uint64_t way = 0; way < kWays; ++way) {
    const std::uint64_t entry = g_rules[key.first_slot() ^ way].load(std::memory_order_relaxed);
    if (const PackedRule rule = key.rule_in(entry); rule.present()) return rule;
  }
  return {};
}

// Two threads may choose the same free way; then one rule is compiled again later.
void insert(const RuleKey& key, PackedRule rule) noexcept {
  std::uint64_t slot = key.first_slot();
  for (std::uint64_t way = 0; way < kWays; ++way) {
    if (g_rules[key.first_slot() ^ way].load(std::memory_order_relaxed) != 0) continue;
    slot = key.first_slot() ^ way;
    break;
  }
  g_rules[slot].store(key.entry_of(rule), std::memory_order_relaxed);
}

}  // namespace

Rule whole_rule_at(InHook hook, std::uint64_t address) noexcept {
  const std::uint32_t slot = module_slot_at(hook, address);
  return slot == 0 ? Rule{} : compile_rule(hook, loaded_module(slot), address);
}

PackedRule rule_at(InHook hook, std::uint64_t address) noexcept {
  if (address >> kAddressBits != 0) return PackedRule(Rule{});
  const RuleKey key(address);
  if (const PackedRule cached = find(key); cached.present()) return cached;
  const std::uint32_t slot = module_slot_at(hook, address);
  const PackedRule rule(slot == 0 ? Rule{} : compile_rule(hook, loaded_module(slot), address));
  if constexpr (kSelfCheck) count_rule(rule);
  // Cache "no module here" only where searching is slow: a library may be loaded there next.
  if (slot != 0 || module_search_is_slow()) insert(key, rule);
  return rule;
}

void clear_rules(InHook) noexcept {
  for (std::atomic<std::uint64_t>& entry : g_rules) {
    if (entry.load(std::memory_order_relaxed) == 0) continue;  // keeps clean pages clean
    entry.store(0, std::memory_order_relaxed);
  }
}

}  // namespace oomrec::stack

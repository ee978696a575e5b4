#include "recorder/stack/rules.h"

#include <sys/mman.h>

#include "common/machine/page.h"
#include "common/system/memory.h"
#include "recorder/stack/self_check.h"

namespace oomrec::stack {

alignas(machine::kMostPageBytes) constinit RuleSlot g_small_rules[1u << kSmallTableBits] = {};
constinit std::atomic<RuleSlot*> g_rules{g_small_rules};

namespace {

constexpr Rule kSample{RuleKind::step,           CfaBase::bp, BpLocation::cfa_cell, -16, 16,
                       ReturnLocation::cfa_cell, -8};
static_assert(PackedRule(kSample).unpack() == kSample);
static_assert(PackedRule(Rule{}).kind() == RuleKind::no_information);

constexpr std::uint64_t kWays = 1u << kWayBits;

constinit std::atomic<std::uint32_t> g_used{0};    // slots of the small table
constinit std::atomic<std::uint32_t> g_clears{0};  // of the table
constinit std::atomic<bool> g_grows{false};        // a thread makes a large table

// The table is read and written all over: a page costs two faults, the first for reading zeros, and
// the kernel's copy of these. With one system call it is a fifth of that. Not for the few stacks of
// a program that hardly allocates.
constexpr std::uint32_t kFewRules = 32;

std::uint64_t slots_of(const RuleSlot* table) noexcept {
  return std::uint64_t{1} << (table == g_small_rules ? kSmallTableBits : kLargeTableBits);
}

PackedRule find(const RuleSlot* table, const RuleKey& key) noexcept {
  for (std::uint64_t way = 0; way < kWays; ++way) {
    const std::uint64_t entry = table[key.first_slot(table) ^ way].load(std::memory_order_relaxed);
    if (const PackedRule rule = key.rule_in(entry); rule.present()) return rule;
  }
  return {};
}

// Two threads may choose the same free way; then one rule is compiled again later. True: a way was
// free.
bool insert(RuleSlot* table, const RuleKey& key, PackedRule rule) noexcept {
  std::uint64_t slot = key.first_slot(table);
  bool is_free = false;
  for (std::uint64_t way = 0; way < kWays && !is_free; ++way) {
    is_free = table[key.first_slot(table) ^ way].load(std::memory_order_relaxed) == 0;
    if (is_free) slot = key.first_slot(table) ^ way;
  }
  table[slot].store(key.entry_of(rule), std::memory_order_relaxed);
  return is_free;
}

void clear(RuleSlot* table) noexcept {
  for (std::uint64_t slot = 0; slot < slots_of(table); ++slot) {
    if (table[slot].load(std::memory_order_relaxed) == 0) continue;  // keeps clean pages clean
    table[slot].store(0, std::memory_order_relaxed);
  }
}

// Replaces the small table by a large one, with its rules. Without memory for one it stays, and the
// next insertions try again.
void grow() noexcept {
  if (g_grows.exchange(true, std::memory_order_acquire)) return;
  const std::uint32_t clears = g_clears.load();
  auto* const large = static_cast<RuleSlot*>(
      system::map_private(sizeof(RuleSlot) << kLargeTableBits, system::Pages::populated));
  if (large == nullptr) return g_grows.store(false, std::memory_order_release);
  for (std::uint64_t slot = 0; slot < slots_of(g_small_rules); ++slot) {
    const std::uint64_t entry = g_small_rules[slot].load(std::memory_order_relaxed);
    if (entry == 0) continue;
    const RuleKey key = RuleKey::of_entry(slot, entry);
    insert(large, key, key.rule_in(entry));
  }
  // Sequentially consistent: either clear_rules() sees the large table, or this its count.
  g_rules.store(large);
  if (g_clears.load() != clears) clear(large);
  // Those who still read it find zeros.
  system::call(SYS_madvise, g_small_rules, sizeof(g_small_rules), MADV_DONTNEED);
}

}  // namespace

Rule whole_rule_at(InHook hook, std::uint64_t address) noexcept {
  const std::uint32_t slot = module_slot_at(hook, address);
  return slot == 0 ? Rule{} : compile_rule(hook, loaded_module(slot), address);
}

PackedRule rule_at(InHook hook, std::uint64_t address) noexcept {
  if (address >> kAddressBits != 0) return PackedRule(Rule{});
  const RuleKey key(address);
  RuleSlot* const table = g_rules.load(std::memory_order_acquire);
  if (const PackedRule cached = find(table, key); cached.present()) return cached;
  const std::uint32_t slot = module_slot_at(hook, address);
  const PackedRule rule(slot == 0 ? Rule{} : compile_rule(hook, loaded_module(slot), address));
  if constexpr (kSelfCheck) count_rule(rule);
  // Cache "no module here" only where searching is slow: a library may be loaded there next.
  if (slot == 0 && !module_search_is_slow()) return rule;
  if (!insert(table, key, rule) || table != g_small_rules) return rule;
  const std::uint32_t used = g_used.fetch_add(1, std::memory_order_relaxed);
  if (used == kFewRules) system::populate(g_small_rules, sizeof(g_small_rules));
  if (used >= slots_of(table) / 2) grow();
  return rule;
}

void clear_rules(InHook) noexcept {
  g_clears.fetch_add(1);
  g_used.store(0, std::memory_order_relaxed);
  clear(g_rules.load());
}

}  // namespace oomrec::stack

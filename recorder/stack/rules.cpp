#include "recorder/stack/rules.h"

#include <atomic>

#include "recorder/system/memory.h"

namespace oomrec::stack {
namespace {

// An entry is written under its own sequence number: `key` holds the address in bits 0–47 and the
// number above; address 0 means that the rule is being written. Whoever reads the same key before
// and after the rule has the rule of that key.
struct Entry {
  std::atomic<std::uint64_t> key;
  std::atomic<std::uint64_t> rule;
};
constexpr std::uint64_t kAddressMask = (std::uint64_t{1} << 48) - 1;
constexpr std::uint64_t kSequence = std::uint64_t{1} << 48;

constexpr std::uint32_t kWays = 4;  // one cache line
struct alignas(64) Set {
  Entry ways[kWays];
};
static_assert(sizeof(Set) == 64);

constexpr std::uint32_t kSetBits = 15;  // 131,072 rules, 2 MiB: torch has 84,000 return addresses
constexpr std::uint32_t kSets = 1u << kSetBits;

constinit Set* g_sets = nullptr;
constinit std::atomic<std::uint32_t> g_victim{0};

struct Field {
  unsigned shift, bits;
};
constexpr Field kKind{0, 3}, kCfa{3, 2}, kBp{5, 2}, kBpOffset{7, 16}, kCfaOffset{23, 28},
    kSlot{51, 13};
static_assert(kModuleSlots <= 1u << kSlot.bits);

constexpr std::uint64_t put(Field field, auto value) noexcept {
  return (static_cast<std::uint64_t>(value) & ((std::uint64_t{1} << field.bits) - 1))
         << field.shift;
}
constexpr std::uint64_t get(Field field, std::uint64_t word) noexcept {
  return word >> field.shift & ((std::uint64_t{1} << field.bits) - 1);
}
constexpr std::int64_t get_signed(Field field, std::uint64_t word) noexcept {
  return static_cast<std::int64_t>(word << (64 - field.shift - field.bits)) >> (64 - field.bits);
}

constexpr std::uint64_t pack(const Rule& rule) noexcept {
  return put(kKind, rule.kind) | put(kCfa, rule.cfa) | put(kBp, rule.bp) |
         put(kBpOffset, rule.bp_offset) | put(kCfaOffset, rule.cfa_offset) |
         put(kSlot, rule.module_slot);
}
constexpr Rule unpack(std::uint64_t word) noexcept {
  return {.kind = static_cast<RuleKind>(get(kKind, word)),
          .cfa = static_cast<CfaBase>(get(kCfa, word)),
          .bp = static_cast<BpPlace>(get(kBp, word)),
          .bp_offset = static_cast<std::int16_t>(get_signed(kBpOffset, word)),
          .cfa_offset = static_cast<std::int32_t>(get_signed(kCfaOffset, word)),
          .module_slot = static_cast<std::uint16_t>(get(kSlot, word))};
}
constexpr Rule kSample{RuleKind::step, CfaBase::bp_cell, BpPlace::bp_cell, -16, -8, 4095};
static_assert(unpack(pack(kSample)) == kSample);

Set& set_of(std::uint64_t address) noexcept {
  return g_sets[(address * 0x9e3779b97f4a7c15u) >> (64 - kSetBits)];
}

bool find(const Set& set, std::uint64_t address, std::uint64_t& rule) noexcept {
  for (const Entry& entry : set.ways) {
    const std::uint64_t key = entry.key.load(std::memory_order_acquire);
    if ((key & kAddressMask) != address) continue;
    rule = entry.rule.load(std::memory_order_acquire);
    return entry.key.load(std::memory_order_relaxed) == key;
  }
  return false;
}

void write(Entry& entry, std::uint64_t address, std::uint64_t rule) noexcept {
  std::uint64_t key = entry.key.load(std::memory_order_relaxed);
  if (key != 0 && (key & kAddressMask) == 0)
    return;  // another thread writes here, or was forked away
  const std::uint64_t sequence = (key & ~kAddressMask) + kSequence;
  const std::uint64_t writing = sequence == 0 ? kSequence : sequence;
  if (!entry.key.compare_exchange_strong(key, writing, std::memory_order_relaxed)) return;
  entry.rule.store(rule, std::memory_order_release);
  entry.key.store(writing | address, std::memory_order_release);
}

void insert(Set& set, std::uint64_t address, std::uint64_t rule) noexcept {
  for (Entry& entry : set.ways) {
    const std::uint64_t held = entry.key.load(std::memory_order_relaxed) & kAddressMask;
    if (held != 0 && held != address) continue;
    return write(entry, address, rule);
  }
  write(set.ways[g_victim.fetch_add(1, std::memory_order_relaxed) % kWays], address, rule);
}

}  // namespace

void start_rules(InHook) noexcept {
  if (g_sets == nullptr) g_sets = static_cast<Set*>(system::map_private(kSets * sizeof(Set)));
}

Rule rule_at(InHook hook, std::uint64_t address) noexcept {
  if (address > kAddressMask) return {};
  std::uint64_t word;
  if (g_sets != nullptr && find(set_of(address), address, word)) return unpack(word);
  const std::uint32_t slot = module_slot_at(hook, address);
  Rule rule;
  if (slot != 0) rule = compile_rule(hook, known_module(slot), address);
  rule.module_slot = static_cast<std::uint16_t>(slot);
  // "No module here" is remembered only where asking is dear: a library may be loaded there next.
  if (g_sets != nullptr && (slot != 0 || module_search_is_slow())) {
    insert(set_of(address), address, pack(rule));
  }
  return rule;
}

void clear_rules(InHook) noexcept {
  if (g_sets == nullptr) return;
  for (std::uint32_t i = 0; i < kSets; ++i) {
    for (Entry& entry : g_sets[i].ways) {
      if (entry.key.load(std::memory_order_relaxed) == 0) continue;  // keeps clean pages clean
      entry.key.store(0, std::memory_order_release);
    }
  }
}

}  // namespace oomrec::stack

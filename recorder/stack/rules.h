// One table for the process: address → rule to step out of the frame.
//
// Filled on a miss, read without a lock. An entry is one word: a rule, and the bits of a bijective
// hash of the address that the bucket does not imply. So hits are exact without storing the
// address, and no entry can be torn. A bucket is one cache line; a full one evicts an entry, which
// is compiled again when needed. The table is small until it is half full: nearly every program
// has few return addresses, and some have little address space. Cleared when a library is
// unloaded.
#pragma once

#include <atomic>

#include "recorder/stack/packed_rule.h"

namespace oomrec::stack {

inline constexpr unsigned kAddressBits = 48;
inline constexpr unsigned kWayBits = 3;          // a cache line holds 8
inline constexpr unsigned kSmallTableBits = 16;  // 512 KiB: python has 4,000 return addresses
inline constexpr unsigned kLargeTableBits = 18;  // 2 MiB: torch has 84,000
using RuleSlot = std::atomic<std::uint64_t>;
extern RuleSlot g_small_rules[1u << kSmallTableBits];
extern std::atomic<RuleSlot*> g_rules;  // these, or a large table

// The bucket and the tag of an address.
class RuleKey {
 public:
  // `address` < 2^48. Multiplying by an odd number, modulo 2^48, is a bijection.
  explicit RuleKey(std::uint64_t address) noexcept : hash_(address * kOdd << (64 - kAddressBits)) {}

  // In a table, where lookups start, and where the rule is stored if free; otherwise in any way of
  // its bucket.
  std::uint64_t first_slot(const RuleSlot* table) const noexcept {
    return hash_ >> (64 - (table == g_small_rules ? kSmallTableBits : kLargeTableBits));
  }

  // The rule in `entry` if it is this address's, else empty.
  PackedRule rule_in(std::uint64_t entry) const noexcept {
    const std::uint64_t rest = entry ^ tag();
    return PackedRule(rest >> PackedRule::kBits == 0 ? static_cast<std::uint32_t>(rest) : 0);
  }
  std::uint64_t entry_of(PackedRule rule) const noexcept { return tag() | rule.bits(); }

  // The key of an entry in `slot` of the small table.
  static RuleKey of_entry(std::uint64_t slot, std::uint64_t entry) noexcept {
    const std::uint64_t tag = entry >> PackedRule::kBits << PackedRule::kBits;
    RuleKey key(0);
    key.hash_ = slot >> kWayBits << (64 - kBucketBits) | tag >> kBucketBits;
    return key;
  }

 private:
  static constexpr std::uint64_t kOdd = 0x9e3779b97f4b;
  static constexpr unsigned kBucketBits = kSmallTableBits - kWayBits;
  static_assert(kAddressBits - kBucketBits + PackedRule::kBits == 64);

  std::uint64_t tag() const noexcept { return hash_ << kBucketBits; }

  std::uint64_t hash_;  // in the upper bits
};

// The rule at `address` if it is in its first slot: the quick half of rule_at().
inline PackedRule quick_rule_at(std::uint64_t address) noexcept {
  if (address >> kAddressBits != 0) [[unlikely]]
    return {};
  const RuleKey key(address);
  const RuleSlot* const table = g_rules.load(std::memory_order_acquire);
  return key.rule_in(table[key.first_slot(table)].load(std::memory_order_relaxed));
}

// The rule at `address`, an instruction (for a return address: the byte before it, which is part of
// the call). Some nanoseconds on a hit.
PackedRule rule_at(InHook, std::uint64_t address) noexcept;

// The same, compiled again: for rules that do not fit a PackedRule.
Rule whole_rule_at(InHook, std::uint64_t address) noexcept;

void clear_rules(InHook) noexcept;

}  // namespace oomrec::stack

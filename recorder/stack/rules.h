// One table for the process: address → rule to step out of the frame.
//
// Filled at first sight of an address, read without a lock, bounded. An entry is one word: a rule,
// and what a bijective hash of the address has left when the place in the table is known. So no
// address is kept, a hit is exact, and no entry can be torn. A bucket is one cache line; a full one
// loses an entry and finds it again when needed. Pages are touched when used. Cleared when a
// library is unloaded.
#pragma once

#include <atomic>

#include "recorder/stack/packed_rule.h"

namespace oomrec::stack {

inline constexpr unsigned kAddressBits = 48;
inline constexpr unsigned kTableBits = 18;  // 2 MiB: torch has 84,000 return addresses
inline constexpr unsigned kWayBits = 3;     // a cache line holds 8
alignas(64) extern std::atomic<std::uint64_t> g_rules[1u << kTableBits];

// Where the rule of an address is, and how its entry is told from others.
class RuleKey {
 public:
  // `address` < 2^48. Multiplying by an odd number, modulo 2^48, is a bijection.
  explicit RuleKey(std::uint64_t address) noexcept : hash_(address * kOdd << (64 - kAddressBits)) {}

  // First looked for, and put there if it is free; else in any way of its bucket.
  std::uint64_t place() const noexcept { return hash_ >> (64 - kTableBits); }

  // The rule in `entry`, if it is this address's; unknown() else.
  PackedRule rule_in(std::uint64_t entry) const noexcept {
    const std::uint64_t rest = entry ^ tag();
    return PackedRule(rest >> PackedRule::kBits == 0 ? static_cast<std::uint32_t>(rest) : 0);
  }
  std::uint64_t entry_of(PackedRule rule) const noexcept { return tag() | rule.bits(); }

 private:
  static constexpr std::uint64_t kOdd = 0x9e3779b97f4b;
  static constexpr unsigned kBucketBits = kTableBits - kWayBits;
  static_assert(kAddressBits - kBucketBits + PackedRule::kBits <= 64);

  std::uint64_t tag() const noexcept { return hash_ << kBucketBits; }

  std::uint64_t hash_;  // in the upper bits
};

// The rule at `address` if it stands where it is first looked for: the quick half of rule_at().
inline PackedRule quick_rule_at(std::uint64_t address) noexcept {
  if (address >> kAddressBits != 0) [[unlikely]]
    return {};
  const RuleKey key(address);
  return key.rule_in(g_rules[key.place()].load(std::memory_order_relaxed));
}

// The rule at `address`, an instruction (for a return address: the byte before it, which is part of
// the call). Some nanoseconds when known.
PackedRule rule_at(InHook, std::uint64_t address) noexcept;

// The same, compiled anew: what a PackedRule has no room for.
Rule whole_rule_at(InHook, std::uint64_t address) noexcept;

void clear_rules(InHook) noexcept;

}  // namespace oomrec::stack

// A rule in 29 bits, for the table of rules and the walk cache.
#pragma once

#include "recorder/stack/cfi.h"

namespace oomrec::stack {

class PackedRule {
 public:
  static constexpr unsigned kBits = 29;

  constexpr PackedRule() noexcept = default;  // empty: no rule is all zeros
  constexpr explicit PackedRule(std::uint32_t bits) noexcept : bits_(bits) {}
  constexpr explicit PackedRule(const Rule& rule) noexcept
      : bits_(kPresent | (rule.kind == RuleKind::step && fits(rule) ? figures(rule) : bare(rule))) {
  }

  constexpr std::uint32_t bits() const noexcept { return bits_; }
  constexpr bool present() const noexcept { return bits_ != 0; }

  // Whether the offsets of a step fit, as nearly always. Otherwise the rule must be compiled each
  // time.
  constexpr bool is_step() const noexcept { return present() && get(kCfa) != kNoStep; }
  constexpr RuleKind kind() const noexcept {
    return get(kCfa) != kNoStep ? RuleKind::step : static_cast<RuleKind>(get(kCfaOffset));
  }

  // CFA from sp, bp unchanged or saved in this frame: then 8 ≤ CFA − sp, and every cell that the
  // step reads lies between the two. The functions below are for steps only.
  constexpr bool is_plain() const noexcept { return (bits_ & kPlainMask) == kPresent; }
  // CFA from bp, which is saved below the return address: code with frame pointers.
  constexpr bool is_framed() const noexcept { return (bits_ & kFramedMask) == kFramed; }
  constexpr CfaBase cfa() const noexcept { return static_cast<CfaBase>(get(kCfa)); }
  constexpr BpLocation bp() const noexcept { return static_cast<BpLocation>(get(kBp)); }
  constexpr std::uint64_t cfa_offset() const noexcept { return get_offset(kCfaOffset); }
  constexpr std::uint64_t bp_offset() const noexcept {
    return get_offset(kBpOffset) - (kSavesPairs ? cfa_offset() : 0);
  }
  // Of the return address, from the CFA.
  constexpr std::uint64_t return_offset() const noexcept {
    if constexpr (!kSavesPairs) return static_cast<std::uint64_t>(kFixedReturn);
    return bp_offset() + (keeps_bp() ? 0 : 8);
  }
  constexpr bool uses_bp() const noexcept {
    return cfa() != CfaBase::sp || bp() == BpLocation::bp_cell;
  }
  constexpr bool keeps_bp() const noexcept { return bp() == BpLocation::unchanged; }

  constexpr Rule unpack() const noexcept {
    return {.kind = RuleKind::step,
            .cfa = cfa(),
            .bp = bp(),
            .bp_offset = static_cast<std::int32_t>(bp_offset()),
            .cfa_offset = static_cast<std::int32_t>(cfa_offset()),
            .return_location = ReturnLocation::cfa_cell,
            .return_offset = static_cast<std::int32_t>(return_offset())};
  }

 private:
  // Where the call does not store the return address, the function does, and bp with it, as a pair:
  // then kBpOffset is where they are, from the CFA's base, or the return address alone if bp is
  // unchanged. They are at the lower end of most frames, so that this is 0.
  static constexpr bool kSavesPairs = !machine::kCallStoresReturn;
  static constexpr std::int64_t kFixedReturn = machine::kReturnOffset;

  struct Field {
    unsigned shift, bits;
  };
  static constexpr Field kCfaOffset{0, 16}, kBpOffset{16, 8}, kCfa{24, 2}, kBp{26, 2};
  static constexpr std::uint32_t kPresent = 1u << 28;
  static constexpr std::uint32_t kNoStep = 3;  // in kCfa; kCfaOffset holds the kind
  static constexpr std::uint32_t kPlainMask = kPresent | 3u << kCfa.shift | 2u << kBp.shift;
  static constexpr std::uint32_t kFramedMask = kPresent | 3u << kCfa.shift | 3u << kBp.shift;
  static constexpr std::uint32_t kFramed =
      kPresent | static_cast<std::uint32_t>(CfaBase::bp) << kCfa.shift |
      static_cast<std::uint32_t>(BpLocation::cfa_cell) << kBp.shift;
  static_assert(static_cast<int>(CfaBase::sp) == 0 && static_cast<int>(CfaBase::bp_cell) == 2);
  static_assert(static_cast<int>(BpLocation::unchanged) == 0 &&
                static_cast<int>(BpLocation::cfa_cell) == 1);

  static constexpr std::uint32_t put(Field field, auto value) noexcept {
    return (static_cast<std::uint32_t>(value) & ((1u << field.bits) - 1)) << field.shift;
  }
  constexpr std::uint32_t get(Field field) const noexcept {
    return bits_ >> field.shift & ((1u << field.bits) - 1);
  }
  // Offsets are stored in words and returned in bytes.
  constexpr std::uint64_t get_offset(Field field) const noexcept {
    const auto top =
        static_cast<std::int64_t>(std::uint64_t{bits_} << (64 - field.shift - field.bits));
    return static_cast<std::uint64_t>(top >> (64 - field.bits)) * 8;
  }

  static constexpr bool fits(Field field, std::int32_t bytes) noexcept {
    const std::int32_t half = 1 << (field.bits - 1);
    return bytes % 8 == 0 && bytes / 8 >= -half && bytes / 8 < half;
  }
  // From the CFA: of bp, or where the two are saved as a pair, of the lower one.
  static constexpr std::int32_t saved_offset(const Rule& rule) noexcept {
    const bool is_alone = kSavesPairs && rule.bp == BpLocation::unchanged;
    return is_alone ? rule.return_offset : rule.bp_offset;
  }
  static constexpr std::int32_t field_of_bp(const Rule& rule) noexcept {
    return saved_offset(rule) + (kSavesPairs ? rule.cfa_offset : 0);
  }

  static constexpr bool fits(const Rule& rule) noexcept {
    if (!fits(kCfaOffset, rule.cfa_offset) || !fits(kBpOffset, field_of_bp(rule))) return false;
    if (rule.bp == BpLocation::cfa_cell && rule.bp_offset > -16) return false;
    if constexpr (kSavesPairs) {
      if (rule.return_location != ReturnLocation::cfa_cell || rule.bp == BpLocation::bp_cell ||
          rule.bp == BpLocation::lost || rule.cfa == CfaBase::bp_cell)
        return false;
      const bool is_pair = rule.bp == BpLocation::cfa_cell;
      if (is_pair && rule.return_offset != rule.bp_offset + 8) return false;
      if (rule.return_offset > -8) return false;
      if (rule.cfa == CfaBase::sp && field_of_bp(rule) < 0) return false;
    }
    if (rule.cfa != CfaBase::sp) return true;
    return rule.cfa_offset >= 8 &&
           (rule.bp != BpLocation::cfa_cell || rule.bp_offset >= -rule.cfa_offset);
  }
  static constexpr std::uint32_t figures(const Rule& rule) noexcept {
    return put(kCfaOffset, rule.cfa_offset / 8) | put(kBpOffset, field_of_bp(rule) / 8) |
           put(kCfa, rule.cfa) | put(kBp, rule.bp);
  }
  static constexpr std::uint32_t bare(const Rule& rule) noexcept {
    return put(kCfa, kNoStep) | put(kCfaOffset, rule.kind);
  }

  std::uint32_t bits_ = 0;
};

}  // namespace oomrec::stack

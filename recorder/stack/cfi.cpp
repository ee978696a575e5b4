#include "recorder/stack/cfi.h"

#include "recorder/stack/frame_program.h"

namespace oomrec::stack {
namespace {

constexpr std::int64_t kLargestCfaOffset = (std::int64_t{1} << 27) - 1;

bool cfa_rule(const Row& row, std::uint64_t address, Rule& rule) noexcept {
  Term cfa{row.cfa_register, row.cfa_offset};
  if (row.cfa_register == Row::kNoRegister && !evaluate(row.cfa_expression, address, cfa)) {
    return false;
  }
  if (cfa.constant > kLargestCfaOffset || cfa.constant < -kLargestCfaOffset) return false;
  rule.cfa_offset = static_cast<std::int32_t>(cfa.constant);
  if (cfa.base == kSp && !cfa.cell) {
    rule.cfa = CfaBase::sp;
  } else if (cfa.base == kBp) {
    rule.cfa = cfa.cell ? CfaBase::bp_cell : CfaBase::bp;
  } else {
    return false;
  }
  return true;
}

bool bp_rule(const Row& row, std::uint64_t address, Rule& rule) noexcept {
  Term cell{.constant = row.bp.offset};
  switch (row.bp.kind) {
    case RegisterRule::unchanged:
      rule.bp = BpLocation::unchanged;
      return true;
    case RegisterRule::undefined:
      rule.bp = BpLocation::lost;
      return true;
    case RegisterRule::cfa_cell:
      rule.bp = BpLocation::cfa_cell;
      break;
    case RegisterRule::expression_cell:
      if (!evaluate(row.bp.expression, address, cell) || cell.base != kBp || cell.cell) {
        return false;
      }
      rule.bp = BpLocation::bp_cell;
      break;
    case RegisterRule::other:
      return false;
  }
  rule.bp_offset = static_cast<std::int16_t>(cell.constant);
  return rule.bp_offset == cell.constant;
}

}  // namespace

Rule compile_rule(InHook, const LoadedModule& module, std::uint64_t address) noexcept {
  Rule rule;
  FrameEntry entry;
  switch (find_entry(module, address, entry)) {
    case Found::nothing:
      // A return address at the very start of a function, which no call produced: makecontext()
      // and the like store it to catch the outermost function's return.
      if (find_entry(module, address + 1, entry) == Found::entry && entry.start == address + 1) {
        rule.kind = RuleKind::end;
      }
      return rule;
    case Found::not_understood:
      rule.kind = RuleKind::unsupported;
      return rule;
    case Found::entry:
      break;
  }
  if (entry.signal) {
    rule.kind = RuleKind::signal;
    return rule;
  }
  rule.kind = RuleKind::unsupported;
  Row row;
  if (!run_program(entry, address, row)) return rule;
  if (row.pc.kind == RegisterRule::undefined) {
    rule.kind = RuleKind::end;
    return rule;
  }
  if (row.pc.kind != RegisterRule::cfa_cell || row.pc.offset != -8 || row.sp_is_special)
    return rule;
  if (cfa_rule(row, address, rule) && bp_rule(row, address, rule)) rule.kind = RuleKind::step;
  return rule;
}

}  // namespace oomrec::stack

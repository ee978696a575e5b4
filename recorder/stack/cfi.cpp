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
  rule.bp_offset = static_cast<std::int32_t>(cell.constant);
  return rule.bp_offset == cell.constant;
}

bool return_rule(const Row& row, Rule& rule) noexcept {
  if constexpr (!machine::kCallStoresReturn) {
    if (row.pc.kind == RegisterRule::unchanged) {
      rule.return_location = ReturnLocation::link;
      return true;
    }
  }
  if (row.pc.kind != RegisterRule::cfa_cell) return false;
  rule.return_offset = static_cast<std::int32_t>(row.pc.offset);
  if constexpr (machine::kCallStoresReturn) return row.pc.offset == machine::kReturnOffset;
  return rule.return_offset == row.pc.offset && row.pc.offset < 0;
}

// `bytes` of the code at `address`; nullptr: there is less.
const void* code_at(const LoadedModule& module, std::uint64_t address,
                    std::uint64_t bytes) noexcept {
  const AddressRange code = module.segment_at(address, PF_R | PF_X);
  return bytes != 0 && code.holds(address, bytes) ? reinterpret_cast<const void*>(address)
                                                  : nullptr;
}

// Whether the instruction after `address` is where the outermost function of a coroutine returns to
// (machine::is_context_end).
bool ends_context(const LoadedModule& module, std::uint64_t address) noexcept {
  const void* const code =
      code_at(module, address + 1 - machine::kContextEndBefore, machine::kContextEndBytes);
  return code != nullptr && machine::is_context_end(code);
}

// Whether a signal handler returns to the instruction after `address`, which has no CFI.
bool returns_from_signal(const LoadedModule& module, std::uint64_t address) noexcept {
  const void* const code = code_at(module, address + 1, machine::kSignalReturnBytes);
  return code != nullptr && machine::is_signal_return(code);
}

}  // namespace

Rule compile_rule(InHook, const LoadedModule& module, std::uint64_t address) noexcept {
  Rule rule;
  if (module.stack_switch.holds(address)) {
    rule.kind = RuleKind::end;
    return rule;
  }
  FrameEntry entry;
  switch (find_entry(module, address, entry)) {
    case Found::nothing:
      // A return address at the very start of a function, which no call produced: makecontext()
      // and the like store it to catch the outermost function's return.
      if ((find_entry(module, address + 1, entry) == Found::entry && entry.start == address + 1) ||
          ends_context(module, address)) {
        rule.kind = RuleKind::end;
      }
      if (returns_from_signal(module, address)) rule.kind = RuleKind::signal;
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
  if (row.sp_is_special || !return_rule(row, rule)) return rule;
  if (cfa_rule(row, address, rule) && bp_rule(row, address, rule)) rule.kind = RuleKind::step;
  return rule;
}

}  // namespace oomrec::stack

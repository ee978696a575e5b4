#include "recorder/stack/cfi.h"

#include <algorithm>

#include "common/machine/linkage_table.h"
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

// glibc's code that binds a function at its first call has CFI of its own frame only, without what
// the linkage table has pushed: so the return address lies above the CFA, which no other code does.
// After the pop it is in its register again.
void add_linkage_push(Row& row) noexcept {
  constexpr std::int64_t kPush = machine::kLinkagePush;
  if (kPush == 0 || row.pc.kind != RegisterRule::cfa_cell || row.pc.offset != kPush - 8 ||
      row.cfa_register == Row::kNoRegister)
    return;
  row.cfa_offset += kPush;
  row.pc.offset -= kPush;
  if (row.bp.kind == RegisterRule::cfa_cell) row.bp.offset -= kPush;
  if (row.cfa_register == kSp && row.cfa_offset == 0) row.pc = {};
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

// Where code without CFI is a linkage table's entry, the rule for a signal that interrupts it.
bool linkage_rule(const LoadedModule& module, std::uint64_t address, Rule& rule) noexcept {
  using machine::CodeWord;
  if (machine::kLinkageWords == 0 || address % sizeof(CodeWord) != 0) return false;
  const AddressRange code = module.segment_at(address, PF_R | PF_X);
  if (!code.holds(address)) return false;
  constexpr std::uint64_t kReach = sizeof(CodeWord) * machine::kLinkageWords;
  const std::uint64_t before = std::min(address - code.start, kReach) / sizeof(CodeWord);
  const std::uint64_t after = std::min(code.end - address, kReach) / sizeof(CodeWord);
  const auto* const here = reinterpret_cast<const CodeWord*>(address);
  const auto pushed = machine::pushed_by_linkage({here - before, here + after}, before);
  if (!pushed) return false;
  rule = {.kind = RuleKind::step, .cfa_offset = *pushed, .return_location = ReturnLocation::link};
  return true;
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
      if (linkage_rule(module, address, rule)) return rule;
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
  add_linkage_push(row);
  if (row.sp_is_special || !return_rule(row, rule)) return rule;
  if (cfa_rule(row, address, rule) && bp_rule(row, address, rule)) rule.kind = RuleKind::step;
  return rule;
}

}  // namespace oomrec::stack

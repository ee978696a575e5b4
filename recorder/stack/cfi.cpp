#include "recorder/stack/cfi.h"

#include <cstring>

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

// Whether the instruction after `address` is where the outermost function of a Boost.Context stack
// returns to. make_fcontext has no CFI, and is often a part of the program (PHP's fibres). A jump
// precedes: no call produced this return address.
bool ends_context(const LoadedModule& module, std::uint64_t address) noexcept {
  constexpr unsigned char kJump[] = {0xff, 0xe3};                 // jmp *%rbx
  constexpr unsigned char kLanding[] = {0xf3, 0x0f, 0x1e, 0xfa};  // endbr64, where compiled for it
  constexpr unsigned char kExit[] = {0x48, 0x31, 0xff, 0xe8};     // xor %rdi, %rdi; call _exit
  const std::uint64_t start = address + 1 - sizeof kJump;
  const AddressRange code = module.segment_at(start, PF_R | PF_X);
  if (!code.holds(start, sizeof kJump + sizeof kLanding + sizeof kExit)) return false;
  const auto* at = reinterpret_cast<const unsigned char*>(start);
  if (std::memcmp(at, kJump, sizeof kJump) != 0) return false;
  at += sizeof kJump;
  if (std::memcmp(at, kLanding, sizeof kLanding) == 0) at += sizeof kLanding;
  return std::memcmp(at, kExit, sizeof kExit) == 0;
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

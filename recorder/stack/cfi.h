// How to step out of one frame: DWARF call frame information, run up to one address and boiled down
// to a rule (DWARF 5, 6.4; System V ABI x86-64 and the LSB for .eh_frame and .eh_frame_hdr).
//
// Three registers are followed: pc, sp and bp. What needs another one (a prologue that keeps the
// frame in r10) is `unsupported`. Every byte of .eh_frame is read inside the loaded segment that
// holds it: the information may be damaged, the program must not notice.
#pragma once

#include <cstdint>

#include "common/system/hook_scope.h"
#include "recorder/stack/modules.h"

namespace oomrec::stack {

enum class RuleKind : std::uint8_t {
  no_information,  // no CFI covers this address
  step,            // CFA and bp as below; the return address is at CFA − 8
  end,             // outermost frame
  signal,          // a signal handler returns into this frame: registers are in the kernel's frame
  unsupported,     // there is CFI, of a kind that only a full unwinder follows
};

// Where the canonical frame address (the caller's sp) comes from.
enum class CfaBase : std::uint8_t {
  sp,      // sp + cfa_offset
  bp,      // bp + cfa_offset
  bp_cell  // the word at bp + cfa_offset
};

// Where the caller's bp is.
enum class BpPlace : std::uint8_t {
  unchanged,
  cfa_cell,  // the word at CFA + bp_offset
  bp_cell,   // the word at bp + bp_offset
  lost,      // nobody knows: 0
};

struct Rule {
  RuleKind kind = RuleKind::no_information;
  CfaBase cfa = CfaBase::sp;
  BpPlace bp = BpPlace::unchanged;
  std::int16_t bp_offset = 0;
  std::int32_t cfa_offset = 0;  // |offset| < 2^27

  bool operator==(const Rule&) const = default;
};

// The rule at `address`, an instruction of `module`. Reads the module's memory, no more; at worst a
// binary search and some hundred instructions (0.4 µs; 10 µs when pages are touched first).
Rule compile_rule(InHook, const KnownModule& module, std::uint64_t address) noexcept;

}  // namespace oomrec::stack

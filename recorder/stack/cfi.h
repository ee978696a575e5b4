// How to step out of one frame: runs DWARF call frame information up to one address and reduces it
// to a rule (DWARF 5, 6.4; the machine's ABI and the LSB for .eh_frame and .eh_frame_hdr).
//
// Tracks three registers: pc, sp and bp. Code that needs another one (a prologue that keeps the
// frame in r10) is `unsupported`. All reads of .eh_frame stay inside its loaded segment: damaged
// information must not crash the program.
#pragma once

#include <cstdint>

#include "common/machine/frames.h"
#include "common/system/hook_scope.h"
#include "recorder/stack/modules.h"

namespace oomrec::stack {

enum class RuleKind : std::uint8_t {
  no_information,  // no CFI covers this address
  step,            // CFA, bp and the return address as below
  end,             // outermost frame
  signal,          // a signal handler returns into this frame: registers are in the kernel's frame
  unsupported,     // the CFI needs a full unwinder
};

// Where the canonical frame address (the caller's sp) comes from.
enum class CfaBase : std::uint8_t {
  sp,      // sp + cfa_offset
  bp,      // bp + cfa_offset
  bp_cell  // the word at bp + cfa_offset
};

// Where the caller's bp is.
enum class BpLocation : std::uint8_t {
  unchanged,
  cfa_cell,  // the word at CFA + bp_offset
  bp_cell,   // the word at bp + bp_offset
  lost,      // unknown: 0
};

// Where the return address is.
enum class ReturnLocation : std::uint8_t {
  cfa_cell,  // the word at CFA + return_offset
  link,      // in the register where the call has left it
};

struct Rule {
  RuleKind kind = RuleKind::no_information;
  CfaBase cfa = CfaBase::sp;
  BpLocation bp = BpLocation::unchanged;
  std::int32_t bp_offset = 0;
  std::int32_t cfa_offset = 0;  // |offset| < 2^27
  ReturnLocation return_location = ReturnLocation::cfa_cell;
  std::int32_t return_offset = machine::kReturnOffset;

  bool operator==(const Rule&) const = default;
};

// The rule at `address`, an instruction of `module`. Reads only the module's memory. Cost: a binary
// search and some hundred instructions (0.4 µs; 10 µs when pages are touched first).
Rule compile_rule(InHook, const LoadedModule& module, std::uint64_t address) noexcept;

}  // namespace oomrec::stack

// Runs the program of an FDE up to one address: the rules for pc, sp and bp there (DWARF 5, 6.4.2),
// and their expressions.
#pragma once

#include "recorder/stack/eh_frame.h"

namespace oomrec::stack {

// How to find the caller's value of a register.
struct RegisterRule {
  enum Kind : std::uint8_t {
    unchanged,
    undefined,
    cfa_cell,
    expression_cell,
    other
  } kind = unchanged;
  std::int64_t offset = 0;   // of cfa_cell
  DwarfReader expression{};  // of expression_cell: the cell's address
};

struct Row {
  std::uint64_t cfa_register = kNoRegister;  // kNoRegister: by expression
  std::int64_t cfa_offset = 0;
  DwarfReader cfa_expression{};
  RegisterRule bp{};
  RegisterRule pc{};
  bool sp_is_special = false;  // the caller's sp is not the CFA

  static constexpr std::uint64_t kNoRegister = ~std::uint64_t{0};
};

// The value of a DWARF expression over pc, sp and bp: a register or none, plus a constant; `cell`:
// the word at that address. Covers everything that compilers and glibc emit for the frames we
// support: PLT entries (sp + 8 + 8·(pc's low bits ≥ n)), realigned frames (the word at bp − 8).
struct Term {
  std::uint64_t base = kNoBase;
  std::int64_t constant = 0;
  bool cell = false;

  static constexpr std::uint64_t kNoBase = ~std::uint64_t{0};
  bool is_constant() const noexcept { return base == kNoBase && !cell; }
};

// False: the expression contains something unsupported. `pc`: the address it is evaluated for.
bool evaluate(DwarfReader expression, std::uint64_t pc, Term& result) noexcept;

// The row that applies at `address`. False: an unknown instruction.
bool run_program(const FrameEntry& entry, std::uint64_t address, Row& row) noexcept;

}  // namespace oomrec::stack

// The program of an FDE, run up to one address: what the rules for pc, sp and bp are there (DWARF
// 5, 6.4.2), and the expressions in it.
#pragma once

#include "recorder/stack/eh_frame.h"

namespace oomrec::stack {

// How the caller's value of a register is found.
struct Place {
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
  Place bp{};
  Place pc{};
  bool sp_is_special = false;  // the caller's sp is not the CFA

  static constexpr std::uint64_t kNoRegister = ~std::uint64_t{0};
};

// What a DWARF expression comes to, as far as pc, sp and bp carry it: a register or nothing, plus a
// constant; `cell`: the word at that address. Covers all that compilers and glibc emit for frames
// we support: PLT entries (sp + 8 + 8·(pc's low bits ≥ n)), realigned frames (the word at bp − 8).
struct Term {
  std::uint64_t base = kNoBase;
  std::int64_t constant = 0;
  bool cell = false;

  static constexpr std::uint64_t kNoBase = ~std::uint64_t{0};
  bool is_constant() const noexcept { return base == kNoBase && !cell; }
};

// False: something in the expression that we do not follow. `pc`: the address it is evaluated for.
bool evaluate(DwarfReader expression, std::uint64_t pc, Term& result) noexcept;

// The row that holds at `address`. False: an instruction we do not know.
bool run_program(const FrameEntry& entry, std::uint64_t address, Row& row) noexcept;

}  // namespace oomrec::stack

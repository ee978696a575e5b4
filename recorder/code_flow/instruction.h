// One x86-64 instruction, decoded as far as the flow of a returned value needs it.
//
// Every instruction that compilers emit for ordinary code has its length decoded. Integer moves,
// comparisons, arithmetic and branches have their meaning, too; of the others only what they
// overwrite.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace oomrec::code_flow {

inline constexpr std::size_t kLongestInstruction = 15;

// Registers by their number in the encoding.
inline constexpr std::uint8_t kRax = 0, kRcx = 1, kRdx = 2, kRsp = 4, kRbp = 5, kRsi = 6, kRdi = 7;
inline constexpr std::uint8_t kR8 = 8, kR11 = 11;
inline constexpr std::uint8_t kRip = 16, kNoRegister = 17;

enum class Operation : std::uint8_t {
  other,         // overwrites `to`, and nothing else that matters
  other_wide,    // overwrites rax and rdx (mul, div, cpuid, …)
  move,          // to = from
  move_if,       // to = from, if `condition`
  move_signed,   // to = from, sign-extended from `from_bytes`
  move_zero,     // to = from, zero-extended from `from_bytes`
  load_address,  // to = address of the memory operand
  add,
  subtract,
  bit_and,
  bit_or,
  bit_xor,
  compare,  // flags of to - from
  test,     // flags of to & from
  set_if,   // to = condition ? 1 : 0
  push,     // from
  pop,      // to
  leave,
  call,
  jump,
  jump_if,
  jump_indirect,
  leave_function,  // ret
  stop,            // ud2, hlt, int3
};

enum class OperandKind : std::uint8_t { none, reg, memory, immediate };

struct Operand {
  OperandKind kind = OperandKind::none;
  std::uint8_t reg = kNoRegister;
};

// The memory operand: base + index · scale + displacement.
struct Memory {
  std::uint8_t base = kNoRegister;
  std::uint8_t index = kNoRegister;
  std::uint8_t scale = 1;
  bool other_segment = false;  // fs, gs: not an address of ours
  std::int64_t displacement = 0;
};

struct Instruction {
  Operation operation = Operation::other;
  std::uint8_t length = 0;
  std::uint8_t bytes = 4;  // of the operands: 1, 2, 4 or 8
  std::uint8_t from_bytes = 4;
  std::uint8_t condition = 0;  // low four bits of the opcode
  bool changes_flags = false;
  bool has_memory = false;
  Operand to, from;
  Memory memory;
  std::int64_t immediate = 0;  // also: distance of a branch from its end
};

// False: not an instruction known here, or cut.
bool decode(std::span<const std::uint8_t> code, Instruction&) noexcept;

}  // namespace oomrec::code_flow

// One instruction, decoded as far as the flow of a returned value needs it, and what a call keeps.
//
// Every instruction that compilers emit for ordinary code has its length decoded. Integer moves,
// comparisons, arithmetic and branches have their meaning, too; of the others only what they
// overwrite. The words are the same for each machine. Declares nothing of the machine that is
// compiled for: each machine's machine_code.cpp is tested on every one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace oomrec::machine_code {

inline constexpr std::size_t kLongestInstruction = 15;  // of any machine

// Registers by their number in the encoding.
inline constexpr unsigned kRegisters = 32;
inline constexpr std::uint8_t kNextInstruction = 32;  // its address
inline constexpr std::uint8_t kPage = 33;             // the start of this instruction's 4 KiB
inline constexpr std::uint8_t kNoRegister = 34;

enum class Operation : std::uint8_t {
  other,       // overwrites `to`, and nothing else that matters
  other_wide,  // overwrites the registers of arguments and results (mul, div by `left`, cpuid, …)
  exchange,    // overwrites `to` and the register `from`
  move,        // to = from, and, of a pair, the same with `second` and the memory behind
  move_if,     // to = condition ? from : left
  move_signed,   // to = from, sign-extended from `from_bytes`
  move_zero,     // to = from, zero-extended from `from_bytes`
  load_address,  // to = address of the memory operand
  add,           // to = left + from, likewise the next four
  subtract,
  bit_and,
  bit_or,
  bit_xor,
  shift,       // to = left, shifted: known only that 0 stays 0
  compare,     // flags of left - from
  compare_if,  // condition ? flags of left - from : `otherwise`
  test,        // flags of left & from
  set_if,      // to = condition ? 1 : 0
  push,        // from
  pop,         // to
  leave,
  call,
  jump,
  jump_if,
  jump_if_bits,  // flags of left & from, which are not kept, decide by `condition`
  jump_indirect,
  leave_function,  // ret
  stop,            // ud2, hlt, int3, brk
};

enum class OperandKind : std::uint8_t { none, zero, bit, reg, memory, immediate };

struct Operand {
  OperandKind kind = OperandKind::none;
  std::uint8_t reg = kNoRegister;  // of a bit: its number
};

// Of an operand or an index: its low `bytes`, extended, then shifted left. bytes 0: as it is.
struct Extension {
  std::uint8_t bytes = 0;
  bool is_signed = false;
  std::uint8_t shift = 0;
};

// The memory operand: base + index, extended, + displacement.
struct Memory {
  std::uint8_t base = kNoRegister;
  std::uint8_t index = kNoRegister;
  Extension index_extension;
  bool other_segment = false;  // fs, gs: not an address of ours
  std::int64_t displacement = 0;
};

// Even: the condition; odd: that it does not hold.
enum Condition : std::uint8_t {
  kOverflow = 0,
  kBelow = 2,  // unsigned
  kEqual = 4,
  kBelowOrEqual = 6,
  kNegative = 8,
  kParity = 10,
  kLess = 12,  // signed
  kLessOrEqual = 14,
  kAlways = 16,
};

// What conditions are made of. `below`: of a comparison, what kBelow asks for.
struct FlagValues {
  bool zero = false, negative = false, below = false, overflow = false;
};

struct Instruction {
  Operation operation = Operation::other;
  std::uint8_t length = 0;
  std::uint8_t bytes = 4;  // of the operands: 1, 2, 4 or 8; of vectors up to 16
  std::uint8_t from_bytes = 4;
  std::uint8_t condition = kAlways;
  bool changes_flags = false;
  bool has_memory = false;  // it accesses the memory operand
  bool may_leave = false;   // jump_indirect: through a linkage table, or as a tail call
  Operand to, left, from;
  Operand second;  // move: the other register of a pair
  Extension from_extension;
  Memory memory;
  std::int64_t writeback = 0;  // added to memory.base after the access
  std::int64_t immediate = 0;  // also: distance of a branch from its end
  FlagValues otherwise;
};

// False: not an instruction known here, or cut.
bool decode(std::span<const std::uint8_t> code, Instruction&) noexcept;

// What a function may rely on when it calls another.
struct CallingConvention {
  std::uint8_t result;
  std::uint8_t stack_pointer, frame_pointer;
  std::span<const std::uint8_t> arguments;  // four: in others there is seldom one
  std::uint64_t overwritten;                // by a call: a bit for each register
  std::uint32_t below_stack;           // so many bytes below the stack pointer are the function's
  std::uint32_t return_address_bytes;  // that a call pushes
  std::uint32_t call_bytes;            // of a direct call
  std::int64_t frame_pointer_at;       // from the caller's stack pointer; 0: anywhere in the frame
  bool below_after_bits;               // kBelow holds after an `and`
};
extern const CallingConvention kConvention;

}  // namespace oomrec::machine_code

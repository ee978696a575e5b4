// What a thread's registers and stack hold, as far as it is known, while one path through a
// function is followed.
//
// A value is known exactly or not at all. It also remembers whether it was computed from the
// followed result, even where it is not known itself.
#pragma once

#include <cstdint>

#include "common/machine/machine_code.h"

namespace oomrec::code_flow {

using machine_code::Instruction;
using machine_code::Operand;

struct Value {
  std::uint64_t bits = 0;
  bool known = false;
  bool stale = false;      // read from memory as it is now: good for an address, not for a decision
  bool of_result = false;  // computed from the followed result
  bool narrow = false;     // from less than all of its bits: a number, a flag, but no pointer

  bool is_pointer_of_result() const noexcept { return of_result && !narrow; }
  static constexpr Value constant(std::uint64_t bits) noexcept {
    return {bits, true, false, false};
  }
};

// The flags of the last comparison or calculation.
struct Flags {
  bool known = false;
  bool of_result = false;
  bool ordered = false;  // values.below and overflow are known, too
  machine_code::FlagValues values;
};
enum class Holds : std::uint8_t { no, yes, unknown };
// `condition`: a machine_code::Condition or its opposite.
Holds holds(const Flags&, std::uint8_t condition) noexcept;

// The stack frame of the function that is followed.
struct FrameBounds {
  std::uint64_t end = 0;      // the stack pointer of its caller
  bool readable_now = false;  // it still exists: its memory may be read
};

// What a path did with the result, and what others may see of it.
struct Traces {
  bool escaped = false;        // the result, as a pointer, was stored outside the frame
  bool wrote_outside = false;  // anything was
  bool selected = false;       // a value was chosen by comparing the result
};

class Machine {
 public:
  static constexpr unsigned kSlots = 24;

  Value registers[machine_code::kRegisters];
  Flags flags;

  void reset() noexcept;  // nothing is known

  // Forgets what `other` does not know as well. True: that was something.
  bool join(const Machine& other) noexcept;

  // Executes an instruction that is not a branch. `next`: the address after it.
  void execute(const Instruction&, std::uint64_t next, const FrameBounds&, Traces&) noexcept;
  // What jump_if_bits goes by.
  Flags flags_of_bits(const Instruction&, std::uint64_t next, const FrameBounds&) const noexcept;
  // A pointer is in memory there.
  void keep(std::uint64_t address, Value) noexcept;
  // The callee may overwrite what the calling convention allows, and what it has the address of.
  void return_from_call() noexcept;

  Value address_of(const Instruction&, std::uint64_t next) const noexcept;
  // The operand's low `bytes`.
  Value read(const Instruction&, Operand, unsigned bytes, std::uint64_t next,
             const FrameBounds&) const noexcept;

 private:
  struct Slot {
    std::uint64_t address = 0;  // 0: free
    Value value;
    std::uint8_t bytes = 0;
  };

  Value load(Value address, unsigned bytes, const FrameBounds&) const noexcept;
  void store(Value address, Value value, unsigned bytes, const FrameBounds&, Traces&) noexcept;
  void set_slot(std::uint64_t address, Value value, unsigned bytes) noexcept;
  void write(const Instruction&, Operand, Value, unsigned bytes, std::uint64_t next,
             const FrameBounds&, Traces&) noexcept;
  Value calculate(const Instruction&, Value left, Value from) noexcept;
  void move_pair(const Instruction&, std::uint64_t next, const FrameBounds&, Traces&) noexcept;
  void compare_if(const Instruction&, Value left, Value from) noexcept;
  void perform(const Instruction&, std::uint64_t next, const FrameBounds&, Traces&) noexcept;

  Slot slots_[kSlots];
  std::uint8_t next_slot_ = 0;
};

}  // namespace oomrec::code_flow

#include "recorder/code_flow/past_call.h"

#include <algorithm>
#include <cstddef>
#include <span>

#include "common/system/hook_scope.h"
#include "recorder/symbols/elf_symbols.h"

namespace oomrec::code_flow {

using machine_code::kConvention;
using machine_code::kLongestInstruction;
using machine_code::OperandKind;
using machine_code::Operation;

namespace {

constexpr std::size_t kReadBytes = 96;  // before the call's end: some 20 instructions

// Too large for a signal handler's stack.
constinit Machine g_machine{};

bool leaves(Operation operation) noexcept {
  return operation == Operation::jump || operation == Operation::jump_indirect ||
         operation == Operation::leave_function || operation == Operation::stop;
}

// The code from `start` to the end, in a straight line.
class StraightCode {
 public:
  StraightCode(std::span<const std::uint8_t> code, std::uint64_t end, const Machine& after,
               const FrameBounds& bounds) noexcept
      : code_(code), end_(end), after_(after), bounds_(bounds) {}

  // Executes it on g_machine up to the call that it ends with. False: it does not end with one.
  // `block`: where its last part begins, which nothing before leads into.
  bool run(std::size_t start, std::size_t* block = nullptr) const noexcept {
    Traces traces;
    Instruction instruction;
    for (std::size_t at = start; at < code_.size(); at += instruction.length) {
      if (!decode(code_.subspan(at), instruction)) return false;
      const std::size_t next = at + instruction.length;
      if (next == code_.size()) return instruction.operation == Operation::call;
      if (block != nullptr && leaves(instruction.operation)) *block = next;
      if (instruction.operation == Operation::call)
        g_machine.return_from_call();
      else
        g_machine.execute(instruction, end_ - code_.size() + next, bounds_, traces);
      restore_kept();
    }
    return false;
  }

 private:
  // What a call keeps is after it as before: also where it is not known what was put there.
  void restore_kept() const noexcept {
    for (unsigned number = 0; number < machine_code::kRegisters; ++number)
      if ((kConvention.overwritten >> number & 1) == 0 && !g_machine.registers[number].known)
        g_machine.registers[number] = after_.registers[number];
  }

  const std::span<const std::uint8_t> code_;
  const std::uint64_t end_;  // the address after it
  const Machine& after_;
  const FrameBounds& bounds_;
};

bool read_code(std::uint64_t pc, void* code, std::size_t bytes) noexcept {
  return symbols::read_own_memory(OutsideHooks::in_hook(), pc, code, bytes);
}

// The call that ends at `pc`: a direct one, or one through a cell of a linkage table.
bool call_before(std::uint64_t pc, Instruction& instruction) noexcept {
  constexpr std::uint32_t kMoreBytes = 2;
  for (std::uint32_t bytes = kConvention.call_bytes; bytes <= kConvention.call_bytes + kMoreBytes;
       ++bytes)
    if (read_instruction(pc - bytes, instruction) && instruction.operation == Operation::call &&
        instruction.length == bytes)
      return true;
  return false;
}

// What the memory operand holds, if its address does not depend on a register; else 0.
std::uint64_t pointer_in_operand(const Instruction& instruction, std::uint64_t next) noexcept {
  g_machine.reset();
  const Value cell = g_machine.address_of(instruction, next);
  std::uint64_t pointer = 0;
  const bool is_read = instruction.has_memory && cell.known && !cell.stale &&
                       read_code(cell.bits, &pointer, sizeof pointer);
  return is_read ? pointer : 0;
}

}  // namespace

bool read_instruction(std::uint64_t pc, Instruction& instruction) noexcept {
  std::uint8_t code[kLongestInstruction];
  std::size_t bytes = sizeof code;
  if (!read_code(pc, code, bytes)) {
    bytes = std::min<std::size_t>(bytes, 4096 - pc % 4096);  // the last page of its segment
    if (!read_code(pc, code, bytes)) return false;
  }
  return decode({code, bytes}, instruction);
}

std::uint64_t target_of_call(std::uint64_t pc) noexcept {
  Instruction instruction;
  return call_before(pc, instruction) && instruction.from.kind == OperandKind::none
             ? pc + static_cast<std::uint64_t>(instruction.immediate)
             : 0;
}

std::uint64_t function_called(std::uint64_t pc) noexcept {
  constexpr unsigned kMostInstructions = 3;  // of an entry of a linkage table
  Instruction instruction;
  if (!call_before(pc, instruction)) return 0;
  if (instruction.has_memory) return pointer_in_operand(instruction, pc);
  const std::uint64_t target = target_of_call(pc);
  std::uint64_t at = target;
  for (unsigned i = 0; i < kMostInstructions && at != 0; ++i) {
    if (!read_instruction(at, instruction)) break;
    at += instruction.length;
    if (instruction.operation == Operation::jump_indirect)
      return pointer_in_operand(instruction, at);
  }
  return target;
}

Value argument_of_call(std::uint64_t pc, const Machine& after, const FrameBounds& bounds,
                       unsigned number) noexcept {
  std::uint8_t code[kReadBytes];
  std::size_t bytes = sizeof code;
  while (!read_code(pc - bytes, code, bytes))
    if ((bytes /= 2) < 16) return {};
  const StraightCode straight{{code, bytes}, pc, after, bounds};
  // Where instructions have many lengths, one of the first places is the start of one; from a wrong
  // one the right ones are soon found as well.
  for (std::size_t start = 0; start < bytes; ++start) {
    std::size_t block = start;
    g_machine = after;
    if (!straight.run(start, &block)) continue;
    // Once more, from where the stack pointer comes out as it is at the call.
    const unsigned sp = kConvention.stack_pointer;
    g_machine = after;
    straight.run(block);
    const std::uint64_t moved = g_machine.registers[sp].bits - after.registers[sp].bits;
    g_machine = after;
    g_machine.registers[sp].bits -= moved;
    straight.run(block);
    if (g_machine.registers[sp].bits != after.registers[sp].bits) continue;
    return g_machine.registers[kConvention.arguments[number]];
  }
  return {};
}

}  // namespace oomrec::code_flow

#include "recorder/code_flow/machine.h"

#include <algorithm>
#include <iterator>

#include "recorder/symbols/elf_symbols.h"

namespace oomrec::code_flow {

using machine_code::Extension;
using machine_code::kConvention;
using machine_code::Memory;
using machine_code::OperandKind;
using machine_code::Operation;

namespace {

constexpr unsigned kPointerBytes = 8;

std::uint64_t mask_of(unsigned bytes) noexcept {
  return bytes >= 8 ? ~std::uint64_t{0} : (std::uint64_t{1} << (8 * bytes)) - 1;
}
bool is_negative(std::uint64_t bits, unsigned bytes) noexcept {
  return (bits >> (8 * bytes - 1) & 1) != 0;
}
std::uint64_t extended(std::uint64_t bits, unsigned bytes) noexcept {
  return is_negative(bits, bytes) ? bits | ~mask_of(bytes) : bits & mask_of(bytes);
}

// A pointer whose value is not known, but always the same: what is stored through it is found again
// through it.
Value placeholder(std::uint64_t origin) noexcept {
  constexpr std::uint64_t kNoAddress = std::uint64_t{0xc0} << 56;
  const std::uint64_t mixed = origin * 0x9e37'79b9'7f4a'7c15 >> 24;
  return {kNoAddress | mixed << 12, true, true, false};
}

Value cut(Value value, unsigned bytes) noexcept {
  value.bits &= mask_of(bytes);
  return value;
}

Value extend(Value value, Extension extension) noexcept {
  if (extension.bytes != 0 && extension.bytes < 8)
    value.bits = extension.is_signed ? extended(value.bits, extension.bytes)
                                     : value.bits & mask_of(extension.bytes);
  value.bits <<= extension.shift;
  return value;
}

bool is_comparison(Operation operation) noexcept {
  return operation == Operation::compare || operation == Operation::subtract;
}

Flags flags_of(Operation operation, Value a, Value b, std::uint64_t result,
               unsigned bytes) noexcept {
  Flags flags;
  flags.known = a.known && b.known && !a.stale && !b.stale;
  flags.of_result = a.of_result || b.of_result;
  if (!flags.known) return flags;
  flags.values.zero = (result & mask_of(bytes)) == 0;
  flags.values.negative = is_negative(result, bytes);
  flags.ordered = operation != Operation::add;
  if (is_comparison(operation)) {
    flags.values.below = a.bits < b.bits;
    flags.values.overflow = is_negative((a.bits ^ b.bits) & (a.bits ^ result), bytes);
  } else {
    flags.values.below = kConvention.below_after_bits;
  }
  return flags;
}

bool join(Value& value, const Value& other) noexcept {
  const Value before = value;
  value.known = value.known && other.known && value.bits == other.bits;
  value.stale = value.stale || other.stale;
  value.of_result = value.of_result && other.of_result;
  value.narrow = value.narrow || other.narrow;
  return value.known != before.known || value.stale != before.stale ||
         value.of_result != before.of_result || value.narrow != before.narrow;
}

bool is_same(const Flags& a, const Flags& b) noexcept {
  return a.of_result == b.of_result && a.ordered == b.ordered && b.known &&
         a.values.zero == b.values.zero && a.values.negative == b.values.negative &&
         a.values.below == b.values.below && a.values.overflow == b.values.overflow;
}

}  // namespace

Holds holds(const Flags& flags, std::uint8_t condition) noexcept {
  if (condition == machine_code::kAlways) return Holds::yes;
  if (!flags.known) return Holds::unknown;
  const machine_code::FlagValues& is = flags.values;
  bool value = false;
  bool needs_order = true;
  switch (condition & ~1) {
    case machine_code::kEqual:
      value = is.zero, needs_order = false;
      break;
    case machine_code::kNegative:
      value = is.negative, needs_order = false;
      break;
    case machine_code::kBelow:
      value = is.below;
      break;
    case machine_code::kBelowOrEqual:
      value = is.below || is.zero;
      break;
    case machine_code::kLess:
      value = is.negative != is.overflow;
      break;
    case machine_code::kLessOrEqual:
      value = is.zero || is.negative != is.overflow;
      break;
    default:
      return Holds::unknown;  // overflow, parity
  }
  if (needs_order && !flags.ordered) return Holds::unknown;
  return value != ((condition & 1) != 0) ? Holds::yes : Holds::no;
}

void Machine::reset() noexcept {
  for (std::uint64_t number = 0; number < machine_code::kRegisters; ++number)
    registers[number] = placeholder(number);
  for (Slot& slot : slots_) slot = {};
  flags = {};
}

bool Machine::join(const Machine& other) noexcept {
  bool changed = false;
  for (unsigned number = 0; number < machine_code::kRegisters; ++number)
    changed = code_flow::join(registers[number], other.registers[number]) || changed;
  for (Slot& slot : slots_) {
    if (slot.address == 0) continue;
    const Slot* const same =
        std::find_if(std::begin(other.slots_), std::end(other.slots_), [&](const Slot& candidate) {
          return candidate.address == slot.address && candidate.bytes == slot.bytes;
        });
    if (same != std::end(other.slots_)) {
      changed = code_flow::join(slot.value, same->value) || changed;
    } else {
      slot.address = 0;
      changed = true;
    }
  }
  if (flags.known && !is_same(flags, other.flags)) {
    flags = {};
    changed = true;
  }
  return changed;
}

Value Machine::address_of(const Instruction& instruction, std::uint64_t next) const noexcept {
  const Memory& memory = instruction.memory;
  if (memory.other_segment) return {};
  Value sum = Value::constant(static_cast<std::uint64_t>(memory.displacement));
  const auto add = [&](Value value) {
    sum.bits += value.bits;
    sum.known = sum.known && value.known;
    sum.stale = sum.stale || value.stale;
    sum.of_result = sum.of_result || value.is_pointer_of_result();
  };
  constexpr std::uint64_t kPageBytes = 4096;
  const std::uint64_t start = next - instruction.length;
  if (memory.base == machine_code::kNextInstruction) add(Value::constant(next));
  if (memory.base == machine_code::kPage) add(Value::constant(start / kPageBytes * kPageBytes));
  if (memory.base < machine_code::kRegisters) add(registers[memory.base]);
  if (memory.index < machine_code::kRegisters) {
    Value index = extend(registers[memory.index], memory.index_extension);
    // A number that a function returned after a failure selects an element; it is not its address.
    if (memory.index_extension.shift != 0) index.of_result = false;
    add(index);
  }
  return sum;
}

Value Machine::load(Value address, unsigned bytes, const FrameBounds& frame) const noexcept {
  if (!address.known) return {};
  for (const Slot& slot : slots_)
    if (slot.address == address.bits && slot.address != 0)
      return bytes <= slot.bytes ? cut(slot.value, bytes) : Value{};
  const bool own = registers[kConvention.stack_pointer].known &&
                   address.bits >= registers[kConvention.stack_pointer].bits &&
                   address.bits < frame.end;
  Value value;
  value.stale = true;
  value.known = own && frame.readable_now &&
                symbols::read_own_memory(OutsideHooks::in_hook(), address.bits, &value.bits, bytes);
  return value.known || bytes != 8 ? value : placeholder(address.bits);
}

void Machine::store(Value address, Value value, unsigned bytes, const FrameBounds& frame,
                    Traces& traces) noexcept {
  const std::uint64_t low = registers[kConvention.stack_pointer].bits - kConvention.below_stack;
  const bool own = address.known && registers[kConvention.stack_pointer].known &&
                   address.bits >= low && address.bits < frame.end;
  if (!own) {
    traces.wrote_outside = true;
    traces.escaped = traces.escaped || (value.is_pointer_of_result() && bytes == kPointerBytes);
  }
  if (address.known) set_slot(address.bits, value, bytes);
}

void Machine::keep(std::uint64_t address, Value value) noexcept {
  set_slot(address, value, kPointerBytes);
}

void Machine::set_slot(std::uint64_t address, Value value, unsigned bytes) noexcept {
  Slot* target = nullptr;
  for (Slot& slot : slots_) {
    if (slot.address == 0) continue;
    const bool overlaps = slot.address < address + bytes && address < slot.address + slot.bytes;
    if (overlaps) slot.address = 0;
  }
  for (Slot& slot : slots_)
    if (slot.address == 0 && target == nullptr) target = &slot;
  if (target == nullptr) target = &slots_[next_slot_++ % kSlots];
  *target = {address, value, static_cast<std::uint8_t>(bytes)};
}

Value Machine::read(const Instruction& instruction, Operand operand, unsigned bytes,
                    std::uint64_t next, const FrameBounds& frame) const noexcept {
  switch (operand.kind) {
    case OperandKind::reg:
      return cut(registers[operand.reg], bytes);
    case OperandKind::zero:
      return Value::constant(0);
    case OperandKind::bit:
      return Value::constant(std::uint64_t{1} << operand.reg);
    case OperandKind::memory:
      return load(address_of(instruction, next), bytes, frame);
    case OperandKind::immediate:
      return cut(Value::constant(static_cast<std::uint64_t>(instruction.immediate)), bytes);
    default:
      return {};
  }
}

void Machine::write(const Instruction& instruction, Operand operand, Value value, unsigned bytes,
                    std::uint64_t next, const FrameBounds& frame, Traces& traces) noexcept {
  if (operand.kind == OperandKind::memory)
    return store(address_of(instruction, next), value, bytes, frame, traces);
  if (operand.kind != OperandKind::reg) return;
  Value& target = registers[operand.reg];
  value.narrow = value.narrow || bytes < kPointerBytes;
  if (bytes < 4) {  // the rest of the register stays
    const std::uint64_t mask = mask_of(bytes);
    value.bits = (target.bits & ~mask) | (value.bits & mask);
    value.known = value.known && target.known;
    value.stale = value.stale || target.stale;
  }
  target = value;
}

// What `to` holds after the operation. Sets the flags, if the instruction does.
Value Machine::calculate(const Instruction& instruction, Value left, Value from) noexcept {
  const Operation operation = instruction.operation;
  const bool same = instruction.left.kind == OperandKind::reg &&
                    instruction.from.kind == OperandKind::reg &&
                    instruction.left.reg == instruction.from.reg;
  if (same && (operation == Operation::bit_xor || operation == Operation::subtract))
    left = from = Value::constant(0);  // the idiom that clears a register
  Value result;
  result.known = left.known && from.known;
  result.stale = left.stale || from.stale;
  result.of_result = left.of_result || from.of_result;
  result.narrow = !left.is_pointer_of_result() && !from.is_pointer_of_result();
  switch (operation) {
    case Operation::add:
      result.bits = left.bits + from.bits;
      break;
    case Operation::bit_and:
    case Operation::test:
      result.bits = left.bits & from.bits;
      break;
    case Operation::bit_or:
      result.bits = left.bits | from.bits;
      break;
    case Operation::bit_xor:
      result.bits = left.bits ^ from.bits;
      break;
    default:
      result.bits = left.bits - from.bits;
      break;
  }
  result = cut(result, instruction.bytes);
  if (instruction.changes_flags)
    flags = flags_of(operation, left, from, result.bits, instruction.bytes);
  return result;
}

Flags Machine::flags_of_bits(const Instruction& instruction, std::uint64_t next,
                             const FrameBounds& frame) const noexcept {
  const unsigned bytes = instruction.bytes;
  const Value left = read(instruction, instruction.left, bytes, next, frame);
  const Value from = read(instruction, instruction.from, bytes, next, frame);
  return flags_of(Operation::test, left, from, left.bits & from.bits, bytes);
}

void Machine::compare_if(const Instruction& instruction, Value left, Value from) noexcept {
  const Holds compares = holds(flags, instruction.condition);
  const bool of_result = flags.of_result;
  flags = {};
  if (compares == Holds::no) {
    flags.known = flags.ordered = true;
    flags.values = instruction.otherwise;
  } else {
    const Flags compared =
        flags_of(Operation::compare, left, from, left.bits - from.bits, instruction.bytes);
    if (compares == Holds::yes) flags = compared;
    flags.of_result = compared.of_result;
  }
  flags.of_result = flags.of_result || of_result;
}

// Of `to` and `from` one is memory. Reads both before it writes: a load may overwrite its base.
void Machine::move_pair(const Instruction& instruction, std::uint64_t next,
                        const FrameBounds& frame, Traces& traces) noexcept {
  const unsigned bytes = instruction.bytes;
  Instruction behind = instruction;
  behind.memory.displacement += bytes;
  const bool loads = instruction.from.kind == OperandKind::memory;
  const Operand from = loads ? instruction.from : instruction.second;
  const Operand to = loads ? instruction.second : instruction.to;
  const Value first = read(instruction, instruction.from, bytes, next, frame);
  const Value second = read(behind, from, bytes, next, frame);
  write(instruction, instruction.to, first, bytes, next, frame, traces);
  write(behind, to, second, bytes, next, frame, traces);
}

void Machine::execute(const Instruction& instruction, std::uint64_t next, const FrameBounds& frame,
                      Traces& traces) noexcept {
  perform(instruction, next, frame, traces);
  if (instruction.writeback != 0)
    registers[instruction.memory.base].bits += static_cast<std::uint64_t>(instruction.writeback);
}

void Machine::perform(const Instruction& instruction, std::uint64_t next, const FrameBounds& frame,
                      Traces& traces) noexcept {
  const auto source = [&](unsigned bytes) {
    return read(instruction, instruction.from, bytes, next, frame);
  };
  const auto left = [&] {
    return read(instruction, instruction.left, instruction.bytes, next, frame);
  };
  const auto assign = [&](Value value) {
    write(instruction, instruction.to, value, instruction.bytes, next, frame, traces);
  };
  // As an operand of arithmetic.
  const auto operand = [&] {
    return cut(extend(source(instruction.bytes), instruction.from_extension), instruction.bytes);
  };
  Value& sp = registers[kConvention.stack_pointer];
  switch (instruction.operation) {
    case Operation::move:
      if (instruction.second.kind != OperandKind::none)
        return move_pair(instruction, next, frame, traces);
      return assign(operand());
    case Operation::move_if: {
      const Holds moves = holds(flags, instruction.condition);
      traces.selected = traces.selected || (flags.of_result && moves != Holds::unknown);
      if (moves == Holds::unknown) return assign({});
      Value value = moves == Holds::yes ? source(instruction.bytes) : left();
      value.of_result = value.of_result || flags.of_result;
      return assign(value);
    }
    case Operation::move_zero: {
      Value value = source(instruction.from_bytes);
      value.narrow = value.narrow || instruction.from_bytes < kPointerBytes;
      return assign(value);
    }
    case Operation::move_signed: {
      Value value = source(instruction.from_bytes);
      value.narrow = value.narrow || instruction.from_bytes < kPointerBytes;
      value.bits = extended(value.bits, instruction.from_bytes) & mask_of(instruction.bytes);
      return assign(value);
    }
    case Operation::load_address:
      return assign(address_of(instruction, next));
    case Operation::add:
    case Operation::subtract:
    case Operation::bit_and:
    case Operation::bit_or:
    case Operation::bit_xor:
      return assign(calculate(instruction, left(), operand()));
    case Operation::shift: {
      Value value = left();
      value.known = value.known && value.bits == 0;
      flags = {};
      return assign(value);
    }
    case Operation::compare:
    case Operation::test:
      calculate(instruction, left(), operand());
      return;
    case Operation::compare_if:
      return compare_if(instruction, left(), operand());
    case Operation::set_if: {
      const Holds value = holds(flags, instruction.condition);
      return assign(
          {value == Holds::yes ? 1U : 0U, value != Holds::unknown, false, flags.of_result});
    }
    case Operation::push: {
      const Value value = source(8);
      sp.bits -= 8;
      return store(sp, value, 8, frame, traces);
    }
    case Operation::pop: {
      const Value value = load(sp, 8, frame);
      sp.bits += 8;
      return assign(value);
    }
    case Operation::leave: {
      Value& frame_pointer = registers[kConvention.frame_pointer];
      sp = frame_pointer;
      frame_pointer = load(sp, 8, frame);
      sp.bits += 8;
      return;
    }
    case Operation::other_wide:
      registers[kConvention.result] = {};
      for (const std::uint8_t number : kConvention.arguments) registers[number] = {};
      [[fallthrough]];
    case Operation::exchange:
      if (instruction.from.kind == OperandKind::reg) registers[instruction.from.reg] = {};
      [[fallthrough]];
    default:
      if (instruction.changes_flags) flags = {};
      assign({});
  }
}

void Machine::return_from_call() noexcept {
  for (const std::uint8_t argument : kConvention.arguments)
    for (Slot& slot : slots_)
      if (registers[argument].known && slot.address == registers[argument].bits) slot.address = 0;
  for (unsigned number = 0; number < machine_code::kRegisters; ++number)
    if ((kConvention.overwritten >> number & 1) != 0) registers[number] = {};
  flags = {};
}

}  // namespace oomrec::code_flow

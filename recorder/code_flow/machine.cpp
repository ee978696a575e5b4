#include "recorder/code_flow/machine.h"

#include "recorder/symbols/elf_symbols.h"

namespace oomrec::code_flow {
namespace {

constexpr std::uint64_t kRedZone = 128;  // below the stack pointer, still the function's own

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

Flags flags_of(Operation operation, Value a, Value b, std::uint64_t result,
               unsigned bytes) noexcept {
  Flags flags;
  flags.known = a.known && b.known && !a.stale && !b.stale;
  flags.of_result = a.of_result || b.of_result;
  if (!flags.known) return flags;
  flags.zero = (result & mask_of(bytes)) == 0;
  flags.sign = is_negative(result, bytes);
  flags.carry_known = operation != Operation::add;
  if (operation == Operation::compare || operation == Operation::subtract) {
    flags.carry = a.bits < b.bits;
    flags.overflow = is_negative((a.bits ^ b.bits) & (a.bits ^ result), bytes);
  }
  return flags;
}

}  // namespace

Holds holds(const Flags& flags, std::uint8_t condition) noexcept {
  if (!flags.known) return Holds::unknown;
  bool value = false;
  bool needs_carry = false;
  switch (condition >> 1) {
    case 1:
      value = flags.carry, needs_carry = true;
      break;
    case 2:
      value = flags.zero;
      break;
    case 3:
      value = flags.carry || flags.zero, needs_carry = true;
      break;
    case 4:
      value = flags.sign;
      break;
    case 6:
      value = flags.sign != flags.overflow, needs_carry = true;
      break;
    case 7:
      value = flags.zero || flags.sign != flags.overflow, needs_carry = true;
      break;
    default:
      return Holds::unknown;  // overflow, parity
  }
  if (needs_carry && !flags.carry_known) return Holds::unknown;
  return value != ((condition & 1) != 0) ? Holds::yes : Holds::no;
}

void Machine::reset() noexcept {
  for (std::uint64_t number = 0; number < 16; ++number) registers[number] = placeholder(number);
  for (Slot& slot : slots_) slot = {};
  flags = {};
}

Value Machine::address_of(const Memory& memory, std::uint64_t next) const noexcept {
  if (memory.other_segment) return {};
  Value sum = Value::constant(static_cast<std::uint64_t>(memory.displacement));
  const auto add = [&](Value value, unsigned scale) {
    sum.bits += value.bits * scale;
    sum.known = sum.known && value.known;
    sum.stale = sum.stale || value.stale;
    sum.of_result = sum.of_result || value.of_result;
  };
  if (memory.base == kRip) add(Value::constant(next), 1);
  if (memory.base < 16) add(registers[memory.base], 1);
  if (memory.index < 16) add(registers[memory.index], memory.scale);
  return sum;
}

Value Machine::load(Value address, unsigned bytes, const FrameBounds& frame) const noexcept {
  if (!address.known) return {};
  for (const Slot& slot : slots_)
    if (slot.address == address.bits && slot.address != 0)
      return bytes <= slot.bytes ? cut(slot.value, bytes) : Value{};
  const bool own =
      registers[kRsp].known && address.bits >= registers[kRsp].bits && address.bits < frame.end;
  Value value;
  value.stale = true;
  value.known = own && frame.readable_now &&
                symbols::read_own_memory(OutsideHooks::in_hook(), address.bits, &value.bits, bytes);
  return value.known || bytes != 8 ? value : placeholder(address.bits);
}

void Machine::store(Value address, Value value, unsigned bytes, const FrameBounds& frame,
                    Traces& traces) noexcept {
  const std::uint64_t low = registers[kRsp].bits - kRedZone;
  const bool own =
      address.known && registers[kRsp].known && address.bits >= low && address.bits < frame.end;
  if (!own) {
    traces.wrote_outside = true;
    traces.escaped = traces.escaped || value.of_result;
  }
  if (!address.known) return;
  Slot* target = nullptr;
  for (Slot& slot : slots_) {
    if (slot.address == 0) continue;
    const bool overlaps =
        slot.address < address.bits + bytes && address.bits < slot.address + slot.bytes;
    if (overlaps) slot.address = 0;
  }
  for (Slot& slot : slots_)
    if (slot.address == 0 && target == nullptr) target = &slot;
  if (target == nullptr) target = &slots_[next_slot_++ % kSlots];
  *target = {address.bits, value, static_cast<std::uint8_t>(bytes)};
}

Value Machine::read(const Instruction& instruction, Operand operand, unsigned bytes,
                    std::uint64_t next, const FrameBounds& frame) const noexcept {
  switch (operand.kind) {
    case OperandKind::reg:
      return cut(registers[operand.reg], bytes);
    case OperandKind::memory:
      return load(address_of(instruction.memory, next), bytes, frame);
    case OperandKind::immediate:
      return cut(Value::constant(static_cast<std::uint64_t>(instruction.immediate)), bytes);
    default:
      return {};
  }
}

void Machine::write(const Instruction& instruction, Operand operand, Value value, unsigned bytes,
                    std::uint64_t next, const FrameBounds& frame, Traces& traces) noexcept {
  if (operand.kind == OperandKind::memory)
    return store(address_of(instruction.memory, next), value, bytes, frame, traces);
  if (operand.kind != OperandKind::reg) return;
  Value& target = registers[operand.reg];
  if (bytes < 4) {  // the rest of the register stays
    const std::uint64_t mask = mask_of(bytes);
    value.bits = (target.bits & ~mask) | (value.bits & mask);
    value.known = value.known && target.known;
    value.stale = value.stale || target.stale;
  }
  target = value;
}

// What `to` holds after the operation. Sets the flags.
void Machine::calculate(const Instruction& instruction, Value to, Value from,
                        Value& result) noexcept {
  const Operation operation = instruction.operation;
  const bool same = instruction.to.kind == OperandKind::reg &&
                    instruction.from.kind == OperandKind::reg &&
                    instruction.to.reg == instruction.from.reg;
  if (same && (operation == Operation::bit_xor || operation == Operation::subtract))
    to = from = Value::constant(0);  // the idiom that clears a register
  result = {};
  result.known = to.known && from.known;
  result.stale = to.stale || from.stale;
  result.of_result = to.of_result || from.of_result;
  switch (operation) {
    case Operation::add:
      result.bits = to.bits + from.bits;
      break;
    case Operation::bit_and:
    case Operation::test:
      result.bits = to.bits & from.bits;
      break;
    case Operation::bit_or:
      result.bits = to.bits | from.bits;
      break;
    case Operation::bit_xor:
      result.bits = to.bits ^ from.bits;
      break;
    default:
      result.bits = to.bits - from.bits;
      break;
  }
  result = cut(result, instruction.bytes);
  flags = flags_of(operation, to, from, result.bits, instruction.bytes);
}

void Machine::execute(const Instruction& instruction, std::uint64_t next, const FrameBounds& frame,
                      Traces& traces) noexcept {
  const auto source = [&](unsigned bytes) {
    return read(instruction, instruction.from, bytes, next, frame);
  };
  const auto assign = [&](Value value) {
    write(instruction, instruction.to, value, instruction.bytes, next, frame, traces);
  };
  Value& sp = registers[kRsp];
  switch (instruction.operation) {
    case Operation::move:
      return assign(source(instruction.bytes));
    case Operation::move_if: {
      const Holds moves = holds(flags, instruction.condition);
      traces.selected = traces.selected || (flags.of_result && moves != Holds::unknown);
      if (moves == Holds::yes) assign(source(instruction.bytes));
      if (moves == Holds::unknown) assign({});
      return;
    }
    case Operation::move_zero:
      return assign(source(instruction.from_bytes));
    case Operation::move_signed: {
      Value value = source(instruction.from_bytes);
      value.bits = extended(value.bits, instruction.from_bytes) & mask_of(instruction.bytes);
      return assign(value);
    }
    case Operation::load_address:
      return assign(address_of(instruction.memory, next));
    case Operation::add:
    case Operation::subtract:
    case Operation::bit_and:
    case Operation::bit_or:
    case Operation::bit_xor:
    case Operation::compare:
    case Operation::test: {
      const Value to = read(instruction, instruction.to, instruction.bytes, next, frame);
      Value result;
      calculate(instruction, to, source(instruction.bytes), result);
      if (instruction.operation != Operation::compare && instruction.operation != Operation::test)
        assign(result);
      return;
    }
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
      sp = registers[kRbp];
      registers[kRbp] = load(sp, 8, frame);
      sp.bits += 8;
      return;
    }
    case Operation::other_wide:
      registers[kRax] = registers[kRdx] = registers[kRcx] = {};
      registers[kRsi] = registers[kRdi] = {};
      [[fallthrough]];
    default:
      if (instruction.changes_flags) flags = {};
      if (instruction.from.kind == OperandKind::reg && instruction.to.kind != OperandKind::none)
        registers[instruction.from.reg] = {};  // an exchange
      assign({});
  }
}

void Machine::return_from_call() noexcept {
  for (const std::uint8_t argument : {kRdi, kRsi, kRdx, kRcx})
    for (Slot& slot : slots_)
      if (registers[argument].known && slot.address == registers[argument].bits) slot.address = 0;
  for (const std::uint8_t volatile_register : {kRax, kRcx, kRdx, kRsi, kRdi})
    registers[volatile_register] = {};
  for (std::uint8_t number = kR8; number <= kR11; ++number) registers[number] = {};
  flags = {};
}

}  // namespace oomrec::code_flow

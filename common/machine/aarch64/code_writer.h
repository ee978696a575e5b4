#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <map>
#include <utility>
#include <vector>

#include "common/machine/thread_registers.h"

namespace oomrec::machine {

// A jump to any address needs a register. So the last instructions, which give x16 back, lie near
// to where the thread goes on: a jump without a register reaches 128 MiB.
inline constexpr std::uint64_t kWayBackBytes = 24, kWayBackReach = (std::uint64_t{127}) << 20;
inline std::vector<std::uint8_t> way_back(const ThreadRegisters& after, std::uint64_t address) {
  const std::uint64_t jump = address + 8;
  const std::uint32_t code[] = {
      0xd503245f,                // bti c: a register leads here
      0x58000000 | 3 << 5 | 16,  // ldr x16, 12 bytes on
      0x14000000 | (static_cast<std::uint32_t>((after.pc() - jump) / 4) & 0x03ff'ffff),  // b
      0xd4200000,                                                                        // brk
      static_cast<std::uint32_t>(after.raw().regs[16]),
      static_cast<std::uint32_t>(after.raw().regs[16] >> 32)};
  static_assert(sizeof code == kWayBackBytes);
  std::vector<std::uint8_t> bytes(sizeof code);
  std::memcpy(bytes.data(), code, sizeof code);
  return bytes;
}

class CodeWriter {
 public:
  using Label = int;

  void number(std::uint64_t value, std::size_t bytes) {
    for (std::size_t i = 0; i < bytes; ++i)
      bytes_.push_back(static_cast<std::uint8_t>(value >> (8 * i)));
  }
  std::uint64_t size() const { return bytes_.size(); }
  void place(Label label) { labels_[label] = bytes_.size(); }
  std::uint64_t place_of(Label label) const { return labels_.at(label); }

  void system_call(long number_of_call, std::initializer_list<Operand> operands) {
    unsigned to = 0;
    for (const Operand& operand : operands) {
      if (operand.by_address)
        refer(0x10000000 | to, operand.value);  // adr
      else
        set(to, operand.value);
      ++to;
    }
    set(8, static_cast<std::uint64_t>(number_of_call));
    raw(0xd4000001);  // svc #0
  }

  // --- The call ---
  void set_mailbox(std::uint64_t address) { load(kMailbox, address); }
  void set_stack(std::uint64_t address) {
    load(kScratch, address);
    raw(0x9100001f | kScratch << 5);  // mov sp, …
  }
  void end_stack() {  // the outermost frame
    set(29, 0);
    set(30, 0);
  }
  void call(std::uint64_t function, std::initializer_list<std::uint64_t> arguments) {
    set_arguments(arguments);
    load(16, function);
    raw(0xd63f0200);  // blr x16
  }
  // Of the module whose link_map was the last result.
  void call_in_module(std::uint64_t offset, std::uint64_t argument) {
    raw(0xf9400010);  // ldr x16, [x0]: link_map::l_addr
    set(kScratch, offset);
    raw(0x8b000210 | kScratch << 16);  // add x16, x16, …
    set_arguments({argument});
    raw(0xd63f0200);  // blr x16
  }
  void keep_errno() {                               // whose address was the last result
    raw(0xaa0003e0 | kErrnoAddress);                // mov …, x0
    raw(0xb9400000 | kErrnoAddress << 5 | kErrno);  // ldr w…, […]
  }
  void restore_errno() { raw(0xb9000000 | kErrnoAddress << 5 | kErrno); }  // str w…, […]

  void store_result(std::size_t offset) { store(0, offset); }
  void store_state(std::uint32_t state) {
    set(kScratch, state);
    store(kScratch, 0);
  }

  // --- Jumps ---
  void jump(Label label) { jump(0x14000000, 26, 0, label); }
  void jump_if_null(Label label) { jump(0xb4000000, 19, 5, label); }  // cbz x0: the last result
  void jump_unless_mapped(Label label) {  // the last result is not the mailbox
    compare(0, kMailbox);
    jump(0x54000001, 19, 5, label);  // b.ne
  }
  void jump_if_state(std::uint8_t state, Label label) {
    set(kScratch, state);
    raw(0xf9400000 | kMailbox << 5);  // ldr x0, […]
    compare(0, kScratch);
    jump(0x54000000, 19, 5, label);  // b.eq
  }

  // --- Waits of 50 ms, by the virtual counter ---
  void start_wait() {
    std::uint64_t per_second = 0;
    asm("mrs %0, cntfrq_el0" : "=r"(per_second));
    raw(0xd53be040 | kWaitEnd);  // mrs …, cntvct_el0
    set(kScratch, per_second / 20);
    raw(0x8b000000 | kScratch << 16 | kWaitEnd << 5 | kWaitEnd);  // add
  }
  void jump_while_waiting(Label label) {
    raw(0xd53be040 | kScratch);  // mrs …, cntvct_el0
    compare(kScratch, kWaitEnd);
    jump(0x54000003, 19, 5, label);  // b.lo
  }

  // --- The floating-point state ---
  void save_vectors(std::uint32_t offset) {  // in the mailbox's mapping
    set_vector_base(offset);
    move_vectors(0xad000000);                         // stp q…, q…
    raw(0xd53b4400);                                  // mrs x0, fpcr
    raw(0xd53b4421);                                  // mrs x1, fpsr
    raw(0xf9000000 | 512 / 8 << 10 | kVectors << 5);  // str x0
    raw(0xf9000001 | 520 / 8 << 10 | kVectors << 5);  // str x1
    raw(0xd51b441f);                                  // msr fpcr, xzr
    raw(0xd51b443f);                                  // msr fpsr, xzr
  }
  void restore_vectors(std::uint32_t offset) {
    set_vector_base(offset);
    move_vectors(0xad400000);                         // ldp q…, q…
    raw(0xf9400000 | 512 / 8 << 10 | kVectors << 5);  // ldr x0
    raw(0xf9400001 | 520 / 8 << 10 | kVectors << 5);  // ldr x1
    raw(0xd51b4400);                                  // msr fpcr, x0
    raw(0xd51b4421);                                  // msr fpsr, x1
  }

  // --- The end ---
  void leave(const ThreadRegisters& after, std::uint64_t way_back) {
    const user_regs_struct& r = after.raw();
    set_stack(r.sp);
    load(kScratch, r.pstate);
    raw(0xd51b4200 | kScratch);  // msr nzcv, …
    for (unsigned to = 0; to < 31; ++to) load(to, to == 16 ? way_back : r.regs[to]);
    raw(0xd61f0200);  // br x16
  }

  std::vector<std::uint8_t> finish() {
    while (bytes_.size() % 8 != 0) raw(0xd4200000);  // brk
    for (const auto& [place, word] : words_) {
      fix(place, bytes_.size());
      number(word, 8);
    }
    for (const auto& [place, label] : jumps_) fix(place, labels_.at(label));
    return std::move(bytes_);
  }

 private:
  // Registers that a function keeps, and two that it need not.
  static constexpr unsigned kMailbox = 19, kErrnoAddress = 20, kErrno = 21, kWaitEnd = 22;
  static constexpr unsigned kScratch = 9, kVectors = 10;

  void raw(std::uint32_t instruction) { number(instruction, 4); }
  void set(unsigned to, std::uint64_t value) {
    if (value < 0x10000)
      raw(0xd2800000 | static_cast<std::uint32_t>(value) << 5 | to);  // movz
    else
      load(to, value);
  }
  // Of a value that is not known yet when the code's size is: always as long.
  void load(unsigned to, std::uint64_t value) { refer(0x58000000 | to, value); }  // ldr
  void set_arguments(std::initializer_list<std::uint64_t> arguments) {
    unsigned to = 0;
    for (const std::uint64_t argument : arguments) load(to++, argument);
  }
  void store(unsigned from, std::size_t offset) {  // str from, [mailbox + offset]
    raw(0xf9000000 | static_cast<std::uint32_t>(offset / 8) << 10 | kMailbox << 5 | from);
  }
  void compare(unsigned left, unsigned right) { raw(0xeb00001f | right << 16 | left << 5); }
  void set_vector_base(std::uint32_t offset) {
    set(kScratch, offset);
    raw(0x8b000000 | kScratch << 16 | kMailbox << 5 | kVectors);  // add
  }
  void move_vectors(std::uint32_t instruction) {
    for (unsigned pair = 0; pair < 16; ++pair)
      raw(instruction | 2 * pair << 15 | (2 * pair + 1) << 10 | kVectors << 5 | 2 * pair);
  }
  // An instruction with the distance to a constant, or to a label, in words.
  struct Place {
    std::size_t at;
    unsigned bits, shift;
  };
  void refer(std::uint32_t instruction, std::uint64_t word) {
    words_.push_back({{bytes_.size(), 19, 5}, word});
    raw(instruction);
  }
  void jump(std::uint32_t instruction, unsigned bits, unsigned shift, Label label) {
    jumps_.push_back({{bytes_.size(), bits, shift}, label});
    raw(instruction);
  }
  void fix(const Place& place, std::size_t target) {
    const auto words = static_cast<std::uint32_t>(
        (static_cast<std::int64_t>(target) - static_cast<std::int64_t>(place.at)) / 4);
    std::uint32_t instruction = 0;
    std::memcpy(&instruction, bytes_.data() + place.at, 4);
    instruction |= (words & ((1U << place.bits) - 1)) << place.shift;
    std::memcpy(bytes_.data() + place.at, &instruction, 4);
  }

  std::vector<std::uint8_t> bytes_;
  std::map<Label, std::size_t> labels_;
  std::vector<std::pair<Place, std::uint64_t>> words_;
  std::vector<std::pair<Place, Label>> jumps_;
};

}  // namespace oomrec::machine

#pragma once

#include <cpuid.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <map>
#include <utility>
#include <vector>

#include "common/machine/thread_registers.h"

namespace oomrec::machine {

// A jump leads anywhere: the way back is a part of the code.
inline constexpr std::uint64_t kWayBackBytes = 0, kWayBackReach = 0;
inline std::vector<std::uint8_t> way_back(const ThreadRegisters&, std::uint64_t) { return {}; }

class CodeWriter {
 public:
  using Label = int;

  void number(std::uint64_t value, std::size_t bytes) {
    for (std::size_t i = 0; i < bytes; ++i) raw({static_cast<int>(value >> (8 * i) & 0xff)});
  }
  std::uint64_t size() const { return bytes_.size(); }
  void place(Label label) { labels_[label] = bytes_.size(); }
  std::uint64_t place_of(Label label) const { return labels_.at(label); }

  void system_call(long number_of_call, std::initializer_list<Operand> operands) {
    constexpr Register kArguments[] = {rdi, rsi, rdx, r10, r8, r9};
    std::size_t i = 0;
    for (const Operand& operand : operands) {
      const Register to = kArguments[i++];
      if (operand.by_address) {
        raw({0x48 | to >> 3 << 2, 0x8d, 0x05 | (to & 7) << 3});  // lea to, [rip + …]
        refer(operand.value);
      } else {
        set(to, operand.value);
      }
    }
    set(rax, static_cast<std::uint64_t>(number_of_call));
    raw({0x0f, 0x05});
  }

  // --- The call ---
  void set_mailbox(std::uint64_t address) { set(rbx, address); }
  void set_stack(std::uint64_t address) { set(rsp, address); }
  void end_stack() { set(rbp, 0); }  // the outermost frame
  void call(std::uint64_t function, std::initializer_list<std::uint64_t> arguments) {
    set_arguments(arguments);
    set(rax, function);
    call_rax();
  }
  // Of the module whose link_map was the last result.
  void call_in_module(std::uint64_t offset, std::uint64_t argument) {
    raw({0x48, 0x8b, 0x00});  // mov rax, [rax]: link_map::l_addr
    set(r14, offset);
    raw({0x4c, 0x01, 0xf0});  // add rax, r14
    set_arguments({argument});
    call_rax();
  }
  void keep_errno() {               // whose address was the last result
    raw({0x49, 0x89, 0xc4});        // mov r12, rax
    raw({0x45, 0x8b, 0x2c, 0x24});  // mov r13d, [r12]
  }
  void restore_errno() { raw({0x45, 0x89, 0x2c, 0x24}); }  // mov [r12], r13d

  void store_result(std::size_t offset) {  // mov [rbx + offset], rax
    raw({0x48, 0x89, 0x43, static_cast<int>(offset)});
  }
  void store_state(std::uint32_t state) {  // mov qword [rbx], state
    raw({0x48, 0xc7, 0x03});
    number(state, 4);
  }

  // --- Jumps ---
  void jump(Label label) { jump({0xe9}, label); }
  void jump_if_null(Label label) {  // the last result
    raw({0x48, 0x85, 0xc0});        // test rax, rax
    jump({0x0f, 0x84}, label);
  }
  void jump_unless_mapped(Label label) {  // the last result is not the mailbox
    raw({0x48, 0x39, 0xd8});              // cmp rax, rbx
    jump({0x0f, 0x85}, label);
  }
  void jump_if_state(std::uint8_t state, Label label) {
    raw({0x48, 0x83, 0x3b, state});  // cmp qword [rbx], …
    jump({0x0f, 0x84}, label);
  }

  // --- Waits of some 50 ms, by the time stamp counter ---
  void start_wait() {
    constexpr std::uint64_t kCycles = 150'000'000;
    read_time();
    set(r14, kCycles);
    raw({0x49, 0x01, 0xc6});  // add r14, rax
  }
  void jump_while_waiting(Label label) {
    read_time();
    raw({0x4c, 0x39, 0xf0});  // cmp rax, r14
    jump({0x0f, 0x82}, label);
  }

  // --- All parts of the floating-point state ---
  void save_vectors(std::uint32_t offset) {  // in the mailbox's mapping
    move_vectors(has_xsave() ? 0xa3 : 0x83, offset);
    constexpr std::uint32_t kDefaultMxcsr = 0x1f80;
    raw({0xdb, 0xe3, 0xfc, 0x0f, 0xae, 0x15});  // fninit; cld; ldmxcsr [rip + …]
    refer(kDefaultMxcsr);
  }
  void restore_vectors(std::uint32_t offset) { move_vectors(has_xsave() ? 0xab : 0x8b, offset); }

  // --- The end ---
  void leave(const ThreadRegisters& after, std::uint64_t) {
    constexpr std::uint64_t kRedZoneBytes = 128;
    const user_regs_struct& r = after.raw();
    set(rsp, r.rsp - kRedZoneBytes - 16);
    raw({0xff, 0x35});  // push qword [rip + …]
    refer(r.eflags);
    raw({0x9d});  // popfq
    const std::uint64_t words[] = {r.rax, r.rcx, r.rdx, r.rbx, r.rsp, r.rbp, r.rsi, r.rdi,
                                   r.r8,  r.r9,  r.r10, r.r11, r.r12, r.r13, r.r14, r.r15};
    int to = rax;
    for (const std::uint64_t word : words) {  // mov to, [rip + …]
      raw({0x48 | to >> 3 << 2, 0x8b, 0x05 | (to & 7) << 3});
      refer(word);
      ++to;
    }
    raw({0xff, 0x25});  // jmp [rip + …]
    refer(r.rip);
  }

  std::vector<std::uint8_t> finish() {
    while (bytes_.size() % 8 != 0) raw({0xcc});
    for (const auto& [place, word] : words_) {
      fix(place, bytes_.size());
      number(word, 8);
    }
    for (const auto& [place, label] : jumps_) fix(place, labels_.at(label));
    return std::move(bytes_);
  }

 private:
  // As instructions encode them.
  enum Register : std::uint8_t {
    rax,
    rcx,
    rdx,
    rbx,
    rsp,
    rbp,
    rsi,
    rdi,
    r8,
    r9,
    r10,
    r11,
    r12,
    r13,
    r14,
    r15
  };

  void raw(std::initializer_list<int> bytes) {
    for (const int byte : bytes) bytes_.push_back(static_cast<std::uint8_t>(byte));
  }
  void set(Register to, std::uint64_t value) {  // mov to, imm64
    raw({0x48 | to >> 3, 0xb8 | (to & 7)});
    number(value, 8);
  }
  void set_arguments(std::initializer_list<std::uint64_t> arguments) {
    constexpr Register kArguments[] = {rdi, rsi};
    std::size_t i = 0;
    for (const std::uint64_t argument : arguments) set(kArguments[i++], argument);
  }
  void call_rax() { raw({0xff, 0xd0}); }
  void read_time() {
    raw({0x0f, 0x31});              // rdtsc
    raw({0x48, 0xc1, 0xe2, 0x20});  // shl rdx, 32
    raw({0x48, 0x09, 0xd0});        // or rax, rdx
  }
  static bool has_xsave() {
    unsigned a = 0, b = 0, c = 0, d = 0;
    return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_OSXSAVE) != 0;
  }
  void move_vectors(int instruction, std::uint32_t offset) {  // xsave64 [rbx + …] and the like
    set(rax, 0xffffffff);
    set(rdx, 0xffffffff);
    raw({0x48, 0x0f, 0xae, instruction});
    number(offset, 4);
  }
  // An instruction ends with the distance to a constant, or to a label.
  void refer(std::uint64_t word) {
    words_.push_back({bytes_.size(), word});
    number(0, 4);
  }
  void jump(std::initializer_list<int> instruction, Label label) {
    raw(instruction);
    jumps_.push_back({bytes_.size(), label});
    number(0, 4);
  }
  void fix(std::size_t place, std::size_t target) {
    const auto distance = static_cast<std::int32_t>(target - (place + 4));
    std::memcpy(bytes_.data() + place, &distance, 4);
  }

  std::vector<std::uint8_t> bytes_;
  std::map<Label, std::size_t> labels_;
  std::vector<std::pair<std::size_t, std::uint64_t>> words_;
  std::vector<std::pair<std::size_t, Label>> jumps_;
};

}  // namespace oomrec::machine

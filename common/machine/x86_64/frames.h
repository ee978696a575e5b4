#pragma once

#include <ucontext.h>

#include <cstdint>
#include <cstring>

#include "common/machine/x86_64/instructions.h"

namespace oomrec::machine {

// DWARF's numbers: the frame pointer, the stack pointer, and the column of the return address.
inline constexpr std::uint64_t kDwarfBp = 6, kDwarfSp = 7, kDwarfReturn = 16;
inline constexpr bool kExpressionsHavePc = true;  // kDwarfReturn is the pc in an expression

// A call stores the return address, so that it is always right below the caller's sp.
inline constexpr bool kCallStoresReturn = true;
inline constexpr std::int32_t kReturnOffset = -8;  // from the CFA

// The address in a saved word.
inline constexpr bool kSignsReturns = false;
// Letters of a CIE's augmentation that have no data.
constexpr bool is_marking(char) noexcept { return false; }
[[gnu::always_inline]] constexpr std::uint64_t return_address(std::uint64_t word) noexcept {
  return word;
}
// The word that was saved for a return address that has just been read from this address.
[[gnu::always_inline]] inline std::uint64_t saved_word(std::uint64_t, std::uint64_t pc) noexcept {
  return pc;
}

// Where the return address to a caller is, whose sp this is after the return; `bp`: the callee's.
constexpr std::uint64_t return_cell([[maybe_unused]] std::uint64_t bp, std::uint64_t sp) noexcept {
  return sp - 8;
}

// A frame found by its frame pointer alone: where its caller's sp is.
inline constexpr bool kRecordEndsFrame = true;

// The registers of the caller, from the frame of a function with a frame pointer: the caller's bp,
// and above it the return address.
class CalleeFrame {
 public:
  constexpr CalleeFrame() noexcept = default;
  [[gnu::always_inline]] static CalleeFrame here() noexcept {
    return CalleeFrame(__builtin_frame_address(0));
  }
  explicit operator bool() const noexcept { return frame_ != nullptr; }

  std::uint64_t pc() const noexcept { return load_word(at() + 8); }
  std::uint64_t sp() const noexcept { return at() + 16; }
  std::uint64_t bp() const noexcept { return load_word(at()); }

 private:
  explicit CalleeFrame(const void* frame) noexcept : frame_(frame) {}
  std::uint64_t at() const noexcept { return reinterpret_cast<std::uint64_t>(frame_); }

  const void* frame_ = nullptr;
};

// The registers at this point of the function that it is inlined into.
[[gnu::always_inline]] inline void read_registers(std::uint64_t& pc, std::uint64_t& sp,
                                                  std::uint64_t& bp) noexcept {
  asm volatile("leaq 0(%%rip), %0\n\tmovq %%rsp, %1\n\tmovq %%rbp, %2"
               : "=r"(pc), "=r"(sp), "=r"(bp));
}

// Of libunwind's context and cursor.
inline constexpr std::uint64_t kUnwinderBytes = 2048;

// In the kernel's frame, above a handler's return address (struct rt_sigframe).
inline constexpr std::uint64_t kSignalBp = 120, kSignalSp = 160, kSignalPc = 168;
inline constexpr std::uint64_t kSignalLink = 0;  // none

// What the interrupted thread had in its registers. `link`: the return address of a function that
// has not stored it; 0: this machine has none.
struct InterruptedRegisters {
  std::uint64_t pc, sp, bp, link;
};
inline InterruptedRegisters interrupted_registers(const ucontext_t& context) noexcept {
  const auto& registers = context.uc_mcontext.gregs;
  const auto value = [&](int number) { return static_cast<std::uint64_t>(registers[number]); };
  return {value(REG_RIP), value(REG_RSP), value(REG_RBP), 0};
}

// What a handler returns to, the C library's or ours. It has CFI.
inline constexpr std::uint8_t kSignalReturnCode[] = {0x48, 0xc7, 0xc0, 0x0f, 0,
                                                     0,    0,    0x0f, 0x05};  // rt_sigreturn
inline constexpr std::uint64_t kSignalReturnCall = 7;  // the system call in it
inline constexpr std::uint64_t kSignalReturnBytes = 0;
inline bool is_signal_return([[maybe_unused]] const void* code) noexcept { return false; }

// Whether `code`, whose first byte is the last one of the instruction before a return address, is
// where the outermost function of a Boost.Context stack returns to. make_fcontext has no CFI, and
// is often a part of the program (PHP's fibres). A jump precedes: no call produced this address.
inline constexpr std::uint64_t kContextEndBefore = 2, kContextEndBytes = 10;
inline bool is_context_end(const void* code) noexcept {
  constexpr unsigned char kJump[] = {0xff, 0xe3};                 // jmp *%rbx
  constexpr unsigned char kLanding[] = {0xf3, 0x0f, 0x1e, 0xfa};  // endbr64, where compiled for it
  constexpr unsigned char kExit[] = {0x48, 0x31, 0xff, 0xe8};     // xor %rdi, %rdi; call _exit
  static_assert(sizeof kJump == kContextEndBefore &&
                sizeof kJump + sizeof kLanding + sizeof kExit == kContextEndBytes);
  const auto* at = static_cast<const unsigned char*>(code);
  if (std::memcmp(at, kJump, sizeof kJump) != 0) return false;
  at += sizeof kJump;
  if (std::memcmp(at, kLanding, sizeof kLanding) == 0) at += sizeof kLanding;
  return std::memcmp(at, kExit, sizeof kExit) == 0;
}

}  // namespace oomrec::machine

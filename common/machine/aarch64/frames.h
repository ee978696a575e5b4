#pragma once

#include <ucontext.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "common/machine/aarch64/instructions.h"

namespace oomrec::machine {

// DWARF's numbers: the frame pointer x29, the stack pointer, and the column of the return address,
// which is x30.
inline constexpr std::uint64_t kDwarfBp = 29, kDwarfSp = 31, kDwarfReturn = 30;
inline constexpr bool kExpressionsHavePc = false;

// A call leaves the return address in x30; a function that calls others stores it with x29, as a
// pair. So where it is depends on the function, and a leaf may not have stored it at all.
inline constexpr bool kCallStoresReturn = false;
inline constexpr std::int32_t kReturnOffset = -8;  // of a function that stores it first of all

// The address in a saved word, without the signature of pointer authentication: user space has
// addresses of 48 bits, unless a program asks for more.
inline constexpr bool kSignsReturns = true;
// Letters of a CIE's augmentation that have no data (DWARF for the Arm 64-bit Architecture): signed
// with the B key; the frame is tagged for MTE.
constexpr bool is_marking(char letter) noexcept { return letter == 'B' || letter == 'G'; }
[[gnu::always_inline]] constexpr std::uint64_t return_address(std::uint64_t word) noexcept {
  return word & ((std::uint64_t{1} << 48) - 1);
}
// The word that was saved for a return address that has just been read from this address: it may be
// signed.
[[gnu::always_inline]] inline std::uint64_t saved_word(std::uint64_t address,
                                                       std::uint64_t) noexcept {
  return load_word(address);
}

// Where the return address to a caller is, whose sp this is after the return; `bp`: the callee's,
// which points at its record.
constexpr std::uint64_t return_cell(std::uint64_t bp, [[maybe_unused]] std::uint64_t sp) noexcept {
  return bp + 8;
}

// A frame found by its frame pointer alone: its record is anywhere in it, so the caller's sp is not
// known.
inline constexpr bool kRecordEndsFrame = false;

// The registers of the caller, from the frame of a function with a frame pointer: its record has
// the caller's x29 and the return address.
class CalleeFrame {
 public:
  constexpr CalleeFrame() noexcept = default;
  [[gnu::always_inline]] static CalleeFrame here() noexcept {
    return CalleeFrame(__builtin_frame_address(0), __builtin_dwarf_cfa());
  }
  explicit operator bool() const noexcept { return record_ != nullptr; }

  std::uint64_t pc() const noexcept { return return_address(load_word(at() + 8)); }
  std::uint64_t sp() const noexcept { return reinterpret_cast<std::uint64_t>(sp_); }
  std::uint64_t bp() const noexcept { return load_word(at()); }

 private:
  CalleeFrame(const void* record, const void* sp) noexcept : record_(record), sp_(sp) {}
  std::uint64_t at() const noexcept { return reinterpret_cast<std::uint64_t>(record_); }

  const void* record_ = nullptr;
  const void* sp_ = nullptr;
};

// The registers at this point of the function that it is inlined into.
[[gnu::always_inline]] inline void read_registers(std::uint64_t& pc, std::uint64_t& sp,
                                                  std::uint64_t& bp) noexcept {
  asm volatile("adr %0, . + 4\n\tmov %1, sp\n\tmov %2, x29" : "=r"(pc), "=r"(sp), "=r"(bp));
}

// Of libunwind's context and cursor.
inline constexpr std::uint64_t kUnwinderBytes = 8192;

// In the kernel's frame, where sp points when a handler has returned (struct rt_sigframe): the
// registers lie behind a siginfo of 128 bytes.
inline constexpr std::uint64_t kSignalRegisters =
    128 + offsetof(ucontext_t, uc_mcontext) + offsetof(mcontext_t, regs);
inline constexpr std::uint64_t kSignalBp = kSignalRegisters + 29 * 8,
                               kSignalLink = kSignalRegisters + 30 * 8,
                               kSignalSp = kSignalRegisters + 31 * 8,
                               kSignalPc = kSignalRegisters + 32 * 8;
static_assert(kSignalRegisters == 312);

// What the interrupted thread had in its registers. `link`: the return address of a function that
// has not stored it.
struct InterruptedRegisters {
  std::uint64_t pc, sp, bp, link;
};
inline InterruptedRegisters interrupted_registers(const ucontext_t& context) noexcept {
  const auto& machine = context.uc_mcontext;
  return {machine.pc, machine.sp, machine.regs[29], return_address(machine.regs[30])};
}

// A handler returns to code of the kernel that has no CFI (since Linux 5.8): it is recognized by
// its instructions, as debuggers do.
inline constexpr std::uint8_t kSignalReturnCode[] = {0x68, 0x11, 0x80, 0xd2,   // mov x8, #139
                                                     0x01, 0x00, 0x00, 0xd4};  // svc #0
inline constexpr std::uint64_t kSignalReturnCall = 4;  // the system call in it
inline constexpr std::uint64_t kSignalReturnBytes = sizeof kSignalReturnCode;
inline bool is_signal_return(const void* code) noexcept {
  return std::memcmp(code, kSignalReturnCode, kSignalReturnBytes) == 0;
}

// Of Boost.Context stacks only the end is not recognized: a walk guesses on from there.
inline constexpr std::uint64_t kContextEndBefore = 0, kContextEndBytes = 0;
inline bool is_context_end([[maybe_unused]] const void* code) noexcept { return false; }

}  // namespace oomrec::machine

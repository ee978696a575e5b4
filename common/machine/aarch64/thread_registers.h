// When a thread is stopped in a system call that is to be restarted, the kernel has put it back in
// front of the call's instruction already, with the first argument in x0, and does not say what the
// call has returned (do_signal() in arch/arm64/kernel/signal.c). A call with a time, such as
// nanosleep, goes on with restart_syscall, whose number the kernel puts into x8 only when it lets
// the thread go on. So it is seen at the next stop: a thread that has been at this call twice in a
// row has the right number in x8.
#pragma once

#include <elf.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/user.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <iterator>

#include "common/machine/aarch64/frames.h"

namespace oomrec::machine {

inline constexpr bool kStopHidesCall = true;

class ThreadRegisters {
 public:
  // False: the thread has ended.
  bool read(pid_t thread) {
    iovec set{&r_, sizeof r_};
    if (ptrace(PTRACE_GETREGSET, thread, NT_PRSTATUS, &set) != 0) return false;
    iovec tls{&thread_pointer_, sizeof thread_pointer_};
    ptrace(PTRACE_GETREGSET, thread, NT_ARM_TLS, &tls);
    at_call_ = is_call(thread, r_.pc);
    behind_call_ = is_call(thread, r_.pc - kCallBytes);
    // In a call the kernel has dropped what a call does not keep.
    fragile_vectors_ = has_vectors(thread, kSve) || has_vectors(thread, kStreamingSve);
    return true;
  }
  bool write(pid_t thread) const {
    user_regs_struct copy = r_;
    iovec set{&copy, sizeof copy};
    return ptrace(PTRACE_SETREGSET, thread, NT_PRSTATUS, &set) == 0;
  }

  user_regs_struct& raw() { return r_; }
  const user_regs_struct& raw() const { return r_; }
  // Where the thread is seen from a call's instruction, which read() finds out.
  void set_call(bool at, bool behind) {
    at_call_ = at;
    behind_call_ = behind;
  }

  std::uint64_t pc() const { return r_.pc; }
  std::uint64_t sp() const { return r_.sp; }
  std::uint64_t thread_pointer() const { return thread_pointer_; }

  // In a system call, or at its end.
  bool in_call() const { return at_call_ || behind_call_; }
  // Whether the stop woke the thread up in a system call.
  bool was_asleep() const {
    return at_call_ || (behind_call_ && static_cast<long long>(r_.regs[0]) == -EINTR);
  }
  // SVE registers: a system call keeps the low 128 bits of each. The kernel drops them itself when
  // the thread enters one.
  bool has_fragile_vectors() const { return fragile_vectors_; }

  // Where raw() of what a signal handler has interrupted is in the kernel's frame, at whose start
  // sp is when the handler has returned.
  static constexpr std::uint64_t kInSignalFrame = kSignalRegisters;

  // Whether the thread has not moved in between.
  bool operator==(const ThreadRegisters& other) const {
    return r_.pc == other.r_.pc && r_.sp == other.r_.sp && r_.regs[29] == other.r_.regs[29] &&
           r_.regs[30] == other.r_.regs[30];
  }

  // By DWARF's numbers, from 0. The pc has none.
  static constexpr bool kDwarfHasPc = false;
  std::array<std::uint64_t, 32> dwarf() const {
    std::array<std::uint64_t, 32> words{};
    std::copy(std::begin(r_.regs), std::end(r_.regs), words.begin());
    words[kDwarfReturn] = return_address(words[kDwarfReturn]);
    words[kDwarfSp] = r_.sp;
    return words;
  }

  // Whether restart_call() needs the call as /proc shows it before the stop.
  static constexpr bool kCallIsReadBeforeStop = true;

  // Some calls end with EINTR when their thread is stopped (signal(7)). Their first argument is
  // known from before the stop, if all that the registers still show is the same.
  bool restart_call(const InterruptedCall& call) {
    if (!behind_call_ || static_cast<long long>(r_.regs[0]) != -EINTR || call.pc != r_.pc ||
        call.sp != r_.sp || static_cast<long>(r_.regs[8]) != call.number ||
        !std::equal(std::begin(call.words) + 1, std::end(call.words), std::begin(r_.regs) + 1) ||
        std::find(std::begin(kNotRestarted), std::end(kNotRestarted), call.number) ==
            std::end(kNotRestarted))
      return false;
    r_.regs[0] = call.words[0];
    r_.pc -= kCallBytes;
    at_call_ = true;
    behind_call_ = false;
    return true;
  }

  // As they are after the kernel's own restart of an interrupted call.
  ThreadRegisters restarted() const { return *this; }

  // With which the thread runs other code: as if it had been called, not branched to (BTI).
  ThreadRegisters redirected(std::uint64_t code) const {
    constexpr unsigned long long kBranchType = 3ULL << 10;
    ThreadRegisters there = *this;
    there.r_.pc = code;
    there.r_.pstate &= ~kBranchType;
    return there;
  }

 private:
  static constexpr std::uint64_t kCallBytes = 4;
  static constexpr int kSve = 0x405, kStreamingSve = 0x40b;  // NT_ARM_SVE, NT_ARM_SSVE
  static constexpr long kNotRestarted[] = {SYS_epoll_pwait,   SYS_epoll_pwait2,    SYS_semop,
                                           SYS_semtimedop,    SYS_rt_sigtimedwait, SYS_io_getevents,
                                           SYS_io_pgetevents, SYS_io_uring_enter};

  static bool is_call(pid_t thread, std::uint64_t address) {
    constexpr std::uint32_t kCall = 0xd4000001;  // svc #0
    errno = 0;
    const long word = ptrace(PTRACE_PEEKTEXT, thread, address & ~std::uint64_t{7}, nullptr);
    std::uint32_t halves[2];
    std::memcpy(halves, &word, sizeof halves);
    return errno == 0 && halves[address / 4 % 2] == kCall;
  }

  // Whether these registers hold more than the 128 bits of each that every processor has.
  static bool has_vectors(pid_t thread, int kind) {
    struct Header {  // user_sve_header
      std::uint32_t size, max_size;
      std::uint16_t vector_bytes, max_vector_bytes, flags, reserved;
    } header{};
    constexpr std::uint16_t kIsLive = 1;  // SVE_PT_REGS_SVE
    iovec set{&header, sizeof header};
    return ptrace(PTRACE_GETREGSET, thread, kind, &set) == 0 && (header.flags & kIsLive) != 0;
  }

  user_regs_struct r_{};
  std::uint64_t thread_pointer_ = 0;
  bool at_call_ = false, behind_call_ = false, fragile_vectors_ = false;
};

// A control block begins with the address of the thread's table of modules (glibc's tcbhead_t);
// without one, a thread has no variables.
inline bool is_control_block(std::uint64_t address, std::uint64_t first_word) {
  return address != 0 && first_word != 0;
}

}  // namespace oomrec::machine

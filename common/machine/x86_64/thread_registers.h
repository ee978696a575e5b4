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
#include <iterator>

namespace oomrec::machine {

// The kernel shows what the call has returned to it, and restarts it after the stop.
inline constexpr bool kStopHidesCall = false;

class ThreadRegisters {
 public:
  // False: the thread has ended.
  bool read(pid_t thread) {
    iovec set{&r_, sizeof r_};
    return ptrace(PTRACE_GETREGSET, thread, NT_PRSTATUS, &set) == 0;
  }
  bool write(pid_t thread) const {
    user_regs_struct copy = r_;
    iovec set{&copy, sizeof copy};
    return ptrace(PTRACE_SETREGSET, thread, NT_PRSTATUS, &set) == 0;
  }

  user_regs_struct& raw() { return r_; }
  const user_regs_struct& raw() const { return r_; }

  std::uint64_t pc() const { return r_.rip; }
  std::uint64_t sp() const { return r_.rsp; }
  std::uint64_t thread_pointer() const { return r_.fs_base; }

  // In a system call, or at its end.
  bool in_call() const { return static_cast<long long>(r_.orig_rax) >= 0; }
  // Whether the stop woke the thread up in a system call. One that has got no processor since its
  // call ended looks alike otherwise.
  bool was_asleep() const {
    return in_call() &&
           (result() == -EINTR || (result() >= kRestartBlock && result() <= kRestartSys));
  }
  // Vector registers that a system call would not keep.
  bool has_fragile_vectors() const { return false; }

  // Where those that a signal handler has interrupted are in the kernel's frame, if its code has no
  // call frame information; else 0.
  static constexpr std::uint64_t kInSignalFrame = 0;

  // Whether the thread has not moved in between.
  bool operator==(const ThreadRegisters& other) const {
    return r_.rip == other.r_.rip && r_.rsp == other.r_.rsp && r_.orig_rax == other.r_.orig_rax &&
           r_.rbp == other.r_.rbp;
  }

  // By DWARF's numbers, from 0.
  static constexpr bool kDwarfHasPc = true;
  std::array<std::uint64_t, 17> dwarf() const {
    return {r_.rax, r_.rdx, r_.rcx, r_.rbx, r_.rsi, r_.rdi, r_.rbp, r_.rsp, r_.r8,
            r_.r9,  r_.r10, r_.r11, r_.r12, r_.r13, r_.r14, r_.r15, r_.rip};
  }

  // Whether restart_call() needs the call as /proc shows it before the stop.
  static constexpr bool kCallIsReadBeforeStop = false;

  // Changes the registers so that the kernel restarts a call even where it would give up: some end
  // with EINTR when their thread is stopped (signal(7)). False: that is not to be done.
  bool restart_call(const InterruptedCall&) {
    if (!in_call() || result() != -EINTR ||
        std::find(std::begin(kNotRestarted), std::end(kNotRestarted), r_.orig_rax) ==
            std::end(kNotRestarted))
      return false;
    r_.rax = static_cast<unsigned long long>(kRestartNoHand);
    return true;
  }

  // As they are after the kernel's own restart of an interrupted call.
  ThreadRegisters restarted() const {
    ThreadRegisters after = *this;
    if (!in_call()) return after;
    switch (result()) {
      case kRestartSys:
      case kRestartNoIntr:
      case kRestartNoHand:
        after.r_.rax = r_.orig_rax;
        after.r_.rip -= kSyscallBytes;
        break;
      case kRestartBlock:
        after.r_.rax = SYS_restart_syscall;
        after.r_.rip -= kSyscallBytes;
        break;
      default:
        break;
    }
    after.r_.orig_rax = ~0ULL;
    return after;
  }

  // With which the thread runs other code; the kernel restarts no call then.
  ThreadRegisters redirected(std::uint64_t code) const {
    ThreadRegisters there = *this;
    there.r_.rip = code;
    there.r_.orig_rax = ~0ULL;
    there.r_.rax = 0;
    return there;
  }

 private:
  // What an interrupted system call leaves for the kernel's own code (include/linux/errno.h).
  static constexpr long long kRestartSys = -512, kRestartNoIntr = -513, kRestartNoHand = -514,
                             kRestartBlock = -516;
  static constexpr unsigned long long kSyscallBytes = 2;
  static constexpr unsigned long long kNotRestarted[] = {
      SYS_epoll_wait,      SYS_epoll_pwait,  SYS_epoll_pwait2,  SYS_semop,         SYS_semtimedop,
      SYS_rt_sigtimedwait, SYS_io_getevents, SYS_io_pgetevents, SYS_io_uring_enter};

  long long result() const { return static_cast<long long>(r_.rax); }

  user_regs_struct r_{};
};

// A control block begins with its own address (x86-64 psABI); without one, a thread has no
// variables.
inline bool is_control_block(std::uint64_t address, std::uint64_t first_word) {
  return first_word == address;
}

}  // namespace oomrec::machine

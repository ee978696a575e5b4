// The registers of a stopped thread of another process, and how the kernel restarts the system call
// that the stop has interrupted.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <cstdio>

namespace oomrec::machine {

// What /proc/PID/task/TID/syscall says of a thread that waits in a system call.
struct InterruptedCall {
  long number = -1;  // -1: it is in none
  std::uint64_t words[6] = {};
  std::uint64_t sp = 0, pc = 0;  // pc: behind the instruction

  static InterruptedCall of(const char* text) {
    InterruptedCall call;
    if (std::sscanf(text, "%ld %lx %lx %lx %lx %lx %lx %lx %lx", &call.number, &call.words[0],
                    &call.words[1], &call.words[2], &call.words[3], &call.words[4], &call.words[5],
                    &call.sp, &call.pc) != 9)
      return {};
    return call;
  }
};

}  // namespace oomrec::machine

#if defined(__x86_64__)
#include "common/machine/x86_64/thread_registers.h"
#elif defined(__aarch64__)
#include "common/machine/aarch64/thread_registers.h"
#endif

#pragma once

#include <sys/syscall.h>

namespace oomrec::machine {

// clone(2) onto another stack: the new process calls run(argument) and exits with 0. Its pid, or
// -errno. Here the thread pointer comes before the child's word.
inline long clone_onto(void* stack_top, unsigned long flags, const void* pid, const void* word,
                       void (*run)(void*) noexcept, void* argument) noexcept {
  register long number asm("x8") = SYS_clone;
  register unsigned long result asm("x0") = flags;
  register void* stack asm("x1") = stack_top;
  register const void* parent_word asm("x2") = pid;
  register long tls asm("x3") = 0;
  register const void* child_word asm("x4") = word;
  // Both live where the child still finds them; x29 and x30 are cleared to end the child's stack.
  register void* const kept_argument asm("x9") = argument;
  register void (*const kept_run)(void*) noexcept asm("x10") = run;
  asm volatile(
      "svc #0\n\t"
      "cbnz x0, 1f\n\t"
      "mov x29, xzr\n\t"
      "mov x30, xzr\n\t"
      "mov x0, %[argument]\n\t"
      "blr %[run]\n\t"
      "mov x8, %[exit]\n\t"
      "mov x0, xzr\n\t"
      "svc #0\n\t"
      "brk #1\n"
      "1:"
      : "+r"(result)
      : "r"(number), "r"(stack), "r"(parent_word), "r"(tls),
        "r"(child_word), [argument] "r"(kept_argument), [run] "r"(kept_run), [exit] "i"(SYS_exit)
      : "memory", "cc");
  return static_cast<long>(result);
}

// Calls work(argument) on another stack of this thread.
inline void run_on_stack(void* top, void (*work)(void*) noexcept, void* argument) noexcept {
  register void* first asm("x0") = argument;
  asm volatile(
      "mov x19, sp\n\t"
      "mov sp, %[top]\n\t"
      "blr %[work]\n\t"
      "mov sp, x19"
      : "+r"(first)
      : [top] "r"(top), [work] "r"(work)
      : "x1", "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13", "x14",
        "x15", "x16", "x17", "x18", "x19", "x30", "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7",
        "v8", "v9", "v10", "v11", "v12", "v13", "v14", "v15", "v16", "v17", "v18", "v19", "v20",
        "v21", "v22", "v23", "v24", "v25", "v26", "v27", "v28", "v29", "v30", "v31", "memory",
        "cc");
}

}  // namespace oomrec::machine

#pragma once

#include <sys/syscall.h>

namespace oomrec::machine {

// clone(2) onto another stack: the new process calls run(argument) and exits with 0. Its pid, or
// -errno.
inline long clone_onto(void* stack_top, unsigned long flags, const void* pid, const void* word,
                       void (*run)(void*) noexcept, void* argument) noexcept {
  long result = SYS_clone;
  register const void* child_word asm("r10") = word;
  register long tls asm("r8") = 0;
  // Both live where the child still finds them: neither what the kernel takes nor rbp, which is
  // cleared to end the child's stack.
  register void* const kept_argument asm("r12") = argument;
  asm volatile(
      "syscall\n\t"
      "test %%rax, %%rax\n\t"
      "jnz 1f\n\t"
      "xor %%ebp, %%ebp\n\t"
      "mov %[argument], %%rdi\n\t"
      "call *%[run]\n\t"
      "mov %[exit], %%eax\n\t"
      "xor %%edi, %%edi\n\t"
      "syscall\n\t"
      "hlt\n"
      "1:"
      : "+a"(result)
      : "D"(flags), "S"(stack_top), "d"(pid), "r"(child_word),
        "r"(tls), [argument] "r"(kept_argument), [run] "b"(run), [exit] "i"(SYS_exit)
      : "rcx", "r11", "memory", "cc");
  return result;
}

// Calls work(argument) on another stack of this thread.
inline void run_on_stack(void* top, void (*work)(void*) noexcept, void* argument) noexcept {
  asm volatile(
      "mov %%rsp, %%rbx\n\t"
      "mov %[top], %%rsp\n\t"
      "call *%[work]\n\t"
      "mov %%rbx, %%rsp"
      : "+D"(argument)
      : [top] "r"(top), [work] "r"(work)
      : "rbx", "rax", "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11", "xmm0", "xmm1", "xmm2", "xmm3",
        "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14",
        "xmm15", "memory", "cc");
}

}  // namespace oomrec::machine

#include "recorder/helper/clone.h"

#include <sys/syscall.h>

#include <cerrno>

#include "common/system/syscalls.h"

namespace oomrec::helper {

long clone_onto(void* stack_top, unsigned long flags, const void* pid, const void* word,
                void (*run)(void*) noexcept, void* argument) noexcept {
  if (system::is_sandboxed()) return -EPERM;
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

}  // namespace oomrec::helper

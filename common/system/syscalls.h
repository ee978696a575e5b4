// System calls as a hook needs them: straight into the kernel.
//
// libc's functions are cancellation points, write errno, and are among the symbols that the shim
// interposes; call() is none of these. Once the program has put itself into a sandbox a system call
// of ours could be its death: from then on every call() answers -EPERM without entering the kernel.
// Whoever enters the kernel in another way asks is_sandboxed() before.
#pragma once

#include <sys/syscall.h>

#include <atomic>
#include <cerrno>
#include <cstdint>

namespace oomrec::system {

// Seccomp filters that the program has installed, counted by recorder::on_sandbox. One that was in
// force when the recorder began is the container's: under it the recorder works as usual.
inline constinit std::atomic<unsigned> g_filters{0};

inline bool is_sandboxed() noexcept {
  return __builtin_expect(g_filters.load(std::memory_order_relaxed) != 0, 0);
}

// The result, or -errno. Arguments are integers or pointers, at most six.
template <class... Arguments>
inline long call_anyway(long number, Arguments... arguments) noexcept {
  static_assert(sizeof...(Arguments) <= 6);
  const long words[6] = {(long)(arguments)...};  // pointers and integers alike
  long result = number;
  register long fourth asm("r10") = words[3];
  register long fifth asm("r8") = words[4];
  register long sixth asm("r9") = words[5];
  asm volatile("syscall"
               : "+a"(result)
               : "D"(words[0]), "S"(words[1]), "d"(words[2]), "r"(fourth), "r"(fifth), "r"(sixth)
               : "rcx", "r11", "memory");
  return result;
}

template <class... Arguments>
inline long call(long number, Arguments... arguments) noexcept {
  return is_sandboxed() ? -EPERM : call_anyway(number, arguments...);
}

}  // namespace oomrec::system

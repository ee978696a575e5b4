// System calls for hooks: directly into the kernel.
//
// libc's functions are cancellation points, write errno, and are among the symbols that the shim
// interposes; call() avoids all three. After the program has entered a sandbox, a system call of
// ours could kill it: from then on every call() returns -EPERM without entering the kernel. Code
// that enters the kernel in another way must check is_sandboxed() first.
#pragma once

#include <sys/syscall.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "common/machine/instructions.h"

namespace oomrec::system {

// Seccomp filters that the program has installed, counted by recorder::on_sandbox. A filter that
// existed when the recorder started is the container's: under it the recorder works as usual.
inline constinit std::atomic<unsigned> g_filters{0};

inline bool is_sandboxed() noexcept {
  return __builtin_expect(g_filters.load(std::memory_order_relaxed) != 0, 0);
}

// The kernel's result or -errno, even in a sandbox. Arguments are integers or pointers, at most
// six.
template <class... Arguments>
inline long call_unchecked(long number, Arguments... arguments) noexcept {
  static_assert(sizeof...(Arguments) <= 6);
  const long words[6] = {(long)(arguments)...};  // pointers and integers alike
  return machine::system_call(number, words);
}

template <class... Arguments>
inline long call(long number, Arguments... arguments) noexcept {
  return is_sandboxed() ? -EPERM : call_unchecked(number, arguments...);
}

// A signal's action in the format of rt_sigaction(2), which differs from that of sigaction(3).
// Default-constructed: the default action.
struct KernelAction {
  const void* handler = nullptr;
  unsigned long flags = 0;
  void (*restorer)() = nullptr;
  std::uint64_t mask = 0;
};
inline constexpr std::size_t kSignalMaskBytes = sizeof(KernelAction::mask);

}  // namespace oomrec::system

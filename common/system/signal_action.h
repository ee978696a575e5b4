// A signal's action as rt_sigaction(2) has it, which is not as sigaction(3) has it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace oomrec::system {

// As it is: the default action.
struct KernelAction {
  const void* handler = nullptr;
  unsigned long flags = 0;
  void (*restorer)() = nullptr;
  std::uint64_t mask = 0;
};
inline constexpr std::size_t kSignalMaskBytes = sizeof(KernelAction::mask);

}  // namespace oomrec::system

// A signal's action in the format of rt_sigaction(2), which differs from that of sigaction(3).
#pragma once

#include <cstddef>
#include <cstdint>

namespace oomrec::system {

// Default-constructed: the default action.
struct KernelAction {
  const void* handler = nullptr;
  unsigned long flags = 0;
  void (*restorer)() = nullptr;
  std::uint64_t mask = 0;
};
inline constexpr std::size_t kSignalMaskBytes = sizeof(KernelAction::mask);

}  // namespace oomrec::system

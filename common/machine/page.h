// The kernel's page: 4 KiB on x86-64; on aarch64 4, 16 or 64 KiB, as the kernel was built.
#pragma once

#include <cstdint>

#if defined(__x86_64__)
#include "common/machine/x86_64/page.h"
#elif defined(__aarch64__)
#include "common/machine/aarch64/page.h"
#endif

namespace oomrec::machine {

inline std::uint64_t page_down(std::uint64_t address) noexcept {
  return address & ~(page_bytes() - 1);
}
inline std::uint64_t page_up(std::uint64_t address) noexcept {
  return page_down(address + page_bytes() - 1);
}

}  // namespace oomrec::machine

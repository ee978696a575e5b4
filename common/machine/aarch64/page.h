#pragma once

#include <sys/auxv.h>

#include <cstdint>

namespace oomrec::machine {

inline constexpr std::uint64_t kMostPageBytes = 64 * 1024;

inline std::uint64_t page_bytes() noexcept { return ::getauxval(AT_PAGESZ); }

}  // namespace oomrec::machine

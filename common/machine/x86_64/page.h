#pragma once

#include <cstdint>

namespace oomrec::machine {

inline constexpr std::uint64_t kMostPageBytes = 4096;

constexpr std::uint64_t page_bytes() noexcept { return kMostPageBytes; }

}  // namespace oomrec::machine

// Units of memory and time.
#pragma once

#include <cstdint>

namespace oomrec {

inline constexpr std::uint64_t kKiB = std::uint64_t{1} << 10;
inline constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
inline constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

inline constexpr std::uint64_t kSecondNs = 1'000'000'000;

}  // namespace oomrec

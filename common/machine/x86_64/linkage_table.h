#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace oomrec::machine {

// The linker writes the tables' CFI, and glibc's code for binding has the right one.
using CodeWord = std::uint8_t;
inline constexpr std::size_t kLinkageWords = 0;
inline std::optional<std::int32_t> pushed_by_linkage(std::span<const CodeWord>,
                                                     std::size_t) noexcept {
  return {};
}
inline constexpr std::int64_t kLinkagePush = 0;

}  // namespace oomrec::machine

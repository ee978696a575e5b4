#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace oomrec::machine {

// A return address alone does not tell where its function's frame ends, and what compiles at run
// time keeps frame records here, as the platform demands.
inline Epilogue epilogue_of(std::span<const std::uint8_t>) noexcept { return {}; }

inline constexpr std::size_t kLongestCall = 4;
inline Callee callee_of(const std::uint8_t (&)[kLongestCall], std::uint64_t) noexcept { return {}; }

}  // namespace oomrec::machine

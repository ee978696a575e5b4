// One word for a chain of frames: equal words, equal chains.
//
// Made from the outermost frame inwards, so that each frame has the word of the chain that ends in
// it. Each step is a bijection of what is outside, and of what is new: chains that differ in one
// frame only have different words for certain, all others but for one pair in 2^64.
#pragma once

#include <bit>
#include <cstdint>

namespace oomrec::stack {

inline std::uint64_t chain_of(std::uint64_t outside, std::uint64_t a, std::uint64_t b) noexcept {
  return (std::rotl(outside, 29) ^ (a * 0x9e3779b97f4a7c15u + b)) * 0xd6e8feb86659fd93u;
}

}  // namespace oomrec::stack

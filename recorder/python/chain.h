// A 64-bit hash of a chain of frames.
//
// Computed from the outermost frame inwards, so that each frame has the hash of the chain that ends
// in it. Each step is a bijection of the outer hash, and of the new frame: chains that differ in
// one frame always have different hashes; other pairs collide with a chance of 1 in 2^64.
#pragma once

#include <bit>
#include <cstdint>

namespace oomrec::stack {

inline std::uint64_t chain_of(std::uint64_t outside, std::uint64_t a, std::uint64_t b) noexcept {
  return (std::rotl(outside, 29) ^ (a * 0x9e3779b97f4a7c15u + b)) * 0xd6e8feb86659fd93u;
}

}  // namespace oomrec::stack

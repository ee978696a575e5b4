// Reduces how many of the program's blocks are recorded as tables fill up.
#pragma once

#include <cstdint>

namespace oomrec::recorder {

// Called when exact recording has used up its budget. From now on blocks are sampled, finely at
// first, and the session says so. Blocks already in the tables stay exact.
void fall_back_to_sampling() noexcept;

// Halves the rate, down to a sample in `most` bytes: there is no memory, and nothing that could be
// forgotten or thinned.
inline constexpr std::uint64_t kCoarsestInterval = std::uint64_t{64} << 20;
void sample_coarser(std::uint64_t most) noexcept;

// Doubles it, up to the one that was asked for: there is memory again.
void sample_finer() noexcept;

// From now on a sample stands for at least so many bytes.
void sample_at_least(std::uint64_t bytes) noexcept;

}  // namespace oomrec::recorder

// How many of the program's blocks are recorded: fewer as tables fill up.
#pragma once

#include <cstdint>

namespace oomrec::recorder {

// Exact recording has used up its budget: samples from now on, and says so in the session. What is
// in the tables stays exact.
void fall_back_to_sampling() noexcept;

// A table is full. Exact recording falls back to sampling, which makes room; sampling takes half as
// many blocks as before, at most once a tick.
inline constexpr std::uint64_t kCoarsestInterval = std::uint64_t{64} << 20;
void sample_coarser() noexcept;

}  // namespace oomrec::recorder

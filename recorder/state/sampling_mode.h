// How much of what the program allocates is recorded, and less of it as tables fill up.
#pragma once

#include <cstdint>

namespace oomrec::recorder {

// Exact recording has used up its budget: from here on a sample, and the session says so. What is
// in the tables stays exact.
void fall_back_to_sampling() noexcept;

// A table is full: exact falls back to sampling, and there is room again; sampling takes half as
// many as before, once a tick at most.
inline constexpr std::uint64_t kCoarsestInterval = std::uint64_t{64} << 20;
void sample_coarser() noexcept;

}  // namespace oomrec::recorder

// Statistics of a recording: totals, peak, top allocating functions, block sizes, allocators.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/recording/analysis/stacks.h"
#include "tools/recording/reading/recording.h"

namespace oomrec::tools::recording {

struct FunctionFigures {
  LocationId location = 0;
  std::uint64_t bytes = 0;
  std::uint64_t count = 0;
};

struct SizeBucket {  // blocks of `from` ≤ bytes < `to`
  std::uint64_t from = 0, to = 0;
  std::uint64_t count = 0, bytes = 0;
};

struct ApiFigures {
  Api api = Api::none;
  std::uint64_t count = 0, bytes = 0;
};

struct Statistics {
  bool estimated = false;  // functions, sizes and allocators; totals are always exact
  std::uint64_t total_allocated_bytes = 0, total_allocations = 0;
  std::uint64_t peak_bytes = 0, live_bytes = 0, live_count = 0;  // of the spaces that add up
  std::vector<FunctionFigures> by_bytes, by_count;               // all functions, largest first
  std::vector<SizeBucket> sizes;  // without the empty buckets at both ends
  std::vector<ApiFigures> apis;   // most used first
};

Statistics statistics_of(const Recording& recording, Stacks& stacks, const Locations& locations);

// How much a location reveals about what its stack does.
enum class Relevance : std::uint8_t { little, function, python_line, own_python_line };
Relevance relevance_of(const Location& location, const Locations& locations);

// The most relevant location of each stack, for all stacks that exist now: the innermost line of
// the program's own Python code, else of any Python code, else the innermost native function
// outside of allocators and the C and C++ libraries, else the innermost location. 0 for the empty
// stack.
std::vector<LocationId> subjects_of(const Stacks& stacks, const Locations& locations);

// Which allocator serves malloc() in a recorded process.

// "glibc", "jemalloc", or the name of a file that is not known, printable. Where that was not
// recorded, by the modules that are named like an allocator, else "glibc".
std::string allocator_of(const Recording&);

}  // namespace oomrec::tools::recording

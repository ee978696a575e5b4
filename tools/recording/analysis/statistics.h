// What a recording adds up to: totals, peak, the functions that allocated most, sizes, allocators.
#pragma once

#include <cstdint>
#include <vector>

#include "tools/recording/analysis/stacks.h"

namespace oomrec::tools::recording {

struct FunctionFigures {
  PlaceId place = 0;
  std::uint64_t bytes = 0;
  std::uint64_t count = 0;
};

struct SizeBucket {  // from ≤ bytes of a block < to
  std::uint64_t from = 0, to = 0;
  std::uint64_t count = 0, bytes = 0;
};

struct ApiFigures {
  Api api = Api::none;
  std::uint64_t count = 0, bytes = 0;
};

struct Statistics {
  bool estimated = false;  // functions, sizes and allocators are; totals never are
  std::uint64_t total_allocated_bytes = 0, total_allocations = 0;
  std::uint64_t peak_bytes = 0, live_bytes = 0, live_count = 0;  // of the spaces that add up
  std::vector<FunctionFigures> by_bytes, by_count;               // all of them, the largest first
  std::vector<SizeBucket> sizes;  // from the first to the last that is not empty
  std::vector<ApiFigures> apis;   // the most used first
};

Statistics statistics_of(const Recording& recording, Stacks& stacks, const Places& places);

// How well a place tells what its stack is about.
enum class Telling : std::uint8_t { little, function, python_line, own_python_line };
Telling telling_of(const Place& place, const Places& places);

// The place each stack is known by: the innermost Python line of the program's own, else the
// innermost of all, else the innermost native function that is not the allocator's, the C or the
// C++ library's, else the innermost place; 0 for an empty stack. By stack; those that are there
// now.
std::vector<PlaceId> subjects_of(const Stacks& stacks, const Places& places);

}  // namespace oomrec::tools::recording

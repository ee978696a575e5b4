// Fragmentation: memory that allocators hold without using it, in the heap, in mappings and on
// devices; and remedies.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/findings/fragmentation/heap.h"
#include "tools/recording/reading/devices.h"

namespace oomrec::tools::findings {

inline constexpr std::uint64_t kNotableBytes = 32 << 20;  // less is not worth the user's time

struct MapFigures {
  std::uint64_t live_bytes = 0;  // writable and anonymous: as space `map` counts
  std::uint64_t live_count = 0;
  std::uint64_t reserved_bytes = 0;  // address space without memory
  // Of mappings that have holders, reservations included; nothing: nobody has looked.
  std::optional<std::uint64_t> resident_bytes;
  // Of the whole process, from smaps_rollup; nothing: not in the recording.
  std::optional<std::uint64_t> anonymous_bytes, huge_page_bytes, swapped_bytes;
};

struct Remedy {
  std::string_view rule;
  std::string text;
};

struct Fragmentation {
  std::uint64_t rss_bytes = 0;  // 0: unknown
  HeapFigures heap;
  MapFigures map;
  std::vector<recording::DeviceFigures> devices;
  bool expandable_segments = false;  // enabled in PyTorch
  bool arena_max_set = false;        // MALLOC_ARENA_MAX or its tunable
  std::vector<Remedy> remedies;      // empty: nothing notable
};

Fragmentation fragmentation_of(const bundles::Source& source);

// The remedies of all rules that fire. Ignores `remedies` of the argument.
std::vector<Remedy> remedies_for(const Fragmentation& figures);

}  // namespace oomrec::tools::findings

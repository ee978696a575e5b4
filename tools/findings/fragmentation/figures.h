// Memory that allocators hold and nobody uses: of the heap, mappings, devices; and what may help.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/findings/fragmentation/heap.h"
#include "tools/recording/reading/devices.h"

namespace oomrec::tools::findings {

inline constexpr std::uint64_t kNotableBytes = 32 << 20;  // less is not worth anybody's time

struct MapFigures {
  std::uint64_t live_bytes = 0;  // writable and anonymous, as the space counts
  std::uint64_t live_count = 0;
  std::uint64_t reserved_bytes = 0;  // address space without memory
  // Of the whole process, as the kernel told; nothing: the recording does not say.
  std::optional<std::uint64_t> anonymous_bytes, huge_page_bytes, swapped_bytes;
};

struct Remedy {
  std::string_view rule;
  std::string text;
};

struct Fragmentation {
  std::uint64_t rss_bytes = 0;  // 0: not known
  HeapFigures heap;
  MapFigures map;
  std::vector<recording::DeviceFigures> devices;
  bool expandable_segments = false;  // PyTorch was told to use them
  bool one_arena_max = false;        // MALLOC_ARENA_MAX, or its tunable, is set
  std::vector<Remedy> remedies;      // empty: nothing notable
};

Fragmentation fragmentation_of(const bundles::Source& source);

// The rules that fire, by figures alone: `remedies` of its argument is not looked at.
std::vector<Remedy> remedies_for(const Fragmentation& figures);

}  // namespace oomrec::tools::findings

// Fragmentation: memory that allocators hold without using it, in the heap, in mappings and on
// devices; and remedies.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/bundle/heap_areas.h"
#include "tools/bundles/store/source.h"
#include "tools/recording/reading/devices.h"

namespace oomrec::tools::findings {

// How much of the heap allocator's memory is in use, and how the rest is distributed.

// Free runs between live blocks.
struct FreeRuns {
  std::uint64_t bytes = 0;  // of all runs
  std::uint64_t count = 0;
  std::uint64_t largest_bytes = 0;
  std::uint64_t page_bytes = 0;  // in whole pages: malloc_trim() can return them
  // By size: bucket b has runs of 2^b ≤ bytes < 2^(b+1). Without the empty buckets at both ends.
  struct Bucket {
    std::uint64_t from = 0, to = 0, count = 0, bytes = 0;
  };
  std::vector<Bucket> sizes;
};

struct HeapFigures {
  std::string allocator;                         // "glibc", "jemalloc", "tcmalloc", "mimalloc"
  std::uint64_t live_bytes = 0, live_count = 0;  // of the whole space: usable bytes, exact

  // Sums over glibc's areas; nothing: the recording does not contain them.
  struct Areas {
    std::uint64_t count = 0;       // pieces, [heap] included
    std::uint64_t held_bytes = 0;  // writable memory
    std::optional<std::uint64_t> resident_bytes;
    std::uint64_t arenas_bytes = 0;  // part of held_bytes outside [heap]: threads' arenas
    std::uint64_t live_bytes = 0;    // without blocks that have their own mappings
    // True: blocks from before `oomrec attach` may have such, so this much is live at most.
    bool live_is_bound = false;
    // Of the free bytes, those in memory: all that they cost. Nothing: it was not counted.
    std::optional<std::uint64_t> free_resident_bytes;

    std::uint64_t free_bytes() const { return held_bytes - std::min(held_bytes, live_bytes); }
    double free_share() const;

    // As far as it is known that free memory costs something, and of what it is a part.
    std::uint64_t costly_bytes() const { return free_resident_bytes.value_or(free_bytes()); }
    std::uint64_t whole_bytes() const {
      return free_resident_bytes ? resident_bytes.value_or(held_bytes) : held_bytes;
    }
  };
  std::optional<Areas> areas;
  std::optional<FreeRuns> runs;  // only if the recording has the addresses of all blocks
};

// glibc's chunk of a block, from its usable bytes or those requested: the block with its header.
struct HeapChunk {
  std::uint64_t start = 0, end = 0;
};
HeapChunk chunk_of(std::uint64_t address, std::uint64_t bytes);

// The parts of the areas that no chunk covers. Arguments may be unsorted; chunks outside of all
// areas are ignored.
FreeRuns free_runs(const std::vector<bundle::HeapArea>& areas, std::vector<HeapChunk> chunks,
                   std::uint64_t page_bytes);

HeapFigures heap_of(const bundles::Source& source);

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

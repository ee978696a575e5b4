// How much of what the heap's allocator holds is in use, and where the rest lies.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/bundle/heap_areas.h"
#include "tools/bundles/store/source.h"

namespace oomrec::tools::findings {

// What lies free between live blocks, by their addresses.
struct FreeRuns {
  std::uint64_t bytes = 0;  // all of it
  std::uint64_t count = 0;
  std::uint64_t largest_bytes = 0;
  std::uint64_t page_bytes = 0;  // in whole pages: what malloc_trim() gives back
  // By size: run b is 2^b ≤ bytes < 2^(b+1); from the first to the last that is not empty.
  struct Bucket {
    std::uint64_t from = 0, to = 0, count = 0, bytes = 0;
  };
  std::vector<Bucket> sizes;
};

struct HeapFigures {
  std::string allocator;                         // "glibc", "jemalloc", "tcmalloc", "mimalloc"
  std::uint64_t live_bytes = 0, live_count = 0;  // of the space: usable bytes, exact

  // Of glibc's areas; nothing where the recording does not say where they are.
  struct Areas {
    std::uint64_t count = 0;       // pieces, [heap] included
    std::uint64_t held_bytes = 0;  // writable memory
    std::optional<std::uint64_t> resident_bytes;
    std::uint64_t arenas_bytes = 0;  // of held_bytes outside [heap]: the arenas of threads
    std::uint64_t live_bytes = 0;    // of blocks inside; others have mappings of their own

    std::uint64_t free_bytes() const { return held_bytes - std::min(held_bytes, live_bytes); }
    double free_share() const;
  };
  std::optional<Areas> areas;
  std::optional<FreeRuns> runs;  // where the addresses of all blocks are in the recording
};

// A block of the heap as glibc places it.
struct PlacedBlock {
  std::uint64_t start = 0, end = 0;  // with its header
};
PlacedBlock placed(std::uint64_t address, std::uint64_t bytes_asked_for);

// The runs of areas that no block covers. Either may be in any order; blocks outside count nowhere.
FreeRuns free_runs(const std::vector<bundle::HeapArea>& areas, std::vector<PlacedBlock> blocks);

HeapFigures heap_of(const bundles::Source& source);

}  // namespace oomrec::tools::findings

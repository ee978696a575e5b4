// Finds the memory of glibc's allocator: the mapping [heap] and the arenas of further threads.
//
// Reads /proc/PID/maps and pagemap. It does not call the allocator, because the thread that ran out
// of memory may hold its locks. An arena consists of pieces that start at a multiple of 64 MiB and
// are writable as far as they were used: malloc/arena.c, HEAP_MAX_SIZE. A program's own mapping may
// look the same; the recording lists those (TableId::live_ranges).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "common/system/mapping_lines.h"

namespace oomrec::bundle {

struct HeapArea {
  std::uint64_t start = 0, end = 0;  // addresses of the writable part
  std::uint64_t resident_bytes = 0;
  bool is_main = false;  // [heap]

  std::uint64_t bytes() const noexcept { return end - start; }
};

// Counting resident bytes reads 8 bytes for each page; it stops after this many bytes of areas.
inline constexpr std::uint64_t kMaxCountedBytes = std::uint64_t{4} << 30;
inline constexpr std::uint64_t kNotCounted = ~std::uint64_t{0};

// Iterates over the areas of a process in order of address.
class HeapAreas {
 public:
  // `buffer`: some KiB, used until destruction.
  HeapAreas(int pid, std::span<char> buffer) noexcept;
  ~HeapAreas();
  HeapAreas(const HeapAreas&) = delete;
  HeapAreas& operator=(const HeapAreas&) = delete;

  bool is_open() const noexcept { return maps_ >= 0; }  // false: /proc/PID/maps is not readable
  bool next(HeapArea& area) noexcept;                   // false: no more

 private:
  bool next_line(std::string_view& line) noexcept;
  std::uint64_t resident_bytes(const HeapArea& area) noexcept;

  system::MappingLines lines_;
  std::span<char> pages_;
  int maps_ = -1, pagemap_ = -1;  // descriptors
  std::uint64_t counted_bytes_ = 0;
  HeapArea candidate_;  // an arena if what follows it fits; end 0: none
};

}  // namespace oomrec::bundle

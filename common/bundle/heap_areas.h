// Where glibc's allocator has its memory: the mapping [heap] and the arenas of further threads.
//
// Seen from outside, in /proc/PID/maps and pagemap: the allocator is not asked, because the thread
// that ran out of memory may hold its locks. An arena is made of pieces that begin at a multiple of
// 64 MiB and are writable as far as they were used: malloc/arena.c, HEAP_MAX_SIZE. A program's own
// mapping may look alike; the recording knows those (TableId::live_ranges).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace oomrec::bundle {

struct HeapArea {
  std::uint64_t start = 0, end = 0;  // addresses; writable
  std::uint64_t resident_bytes = 0;
  bool is_main = false;  // [heap]

  std::uint64_t bytes() const noexcept { return end - start; }
};

// Resident bytes are counted page by page, 8 bytes each: not in more than this.
inline constexpr std::uint64_t kMostCountedBytes = std::uint64_t{4} << 30;
inline constexpr std::uint64_t kNotCounted = ~std::uint64_t{0};

// The areas of a process, in order of address, one by one.
class HeapAreas {
 public:
  // `buffer`: in use until the end; some KiB.
  HeapAreas(int pid, std::span<char> buffer) noexcept;
  ~HeapAreas();
  HeapAreas(const HeapAreas&) = delete;
  HeapAreas& operator=(const HeapAreas&) = delete;

  bool known() const noexcept { return maps_ >= 0; }  // false: /proc does not show it
  bool next(HeapArea& area) noexcept;                 // false: no more

 private:
  bool next_line(std::string_view& line) noexcept;
  std::uint64_t resident_bytes(const HeapArea& area) noexcept;

  std::span<char> text_, pages_;
  int maps_ = -1, pagemap_ = -1;     // descriptors
  std::size_t begin_ = 0, end_ = 0;  // what is unread of text_
  std::uint64_t counted_bytes_ = 0;
  HeapArea candidate_;  // may be an arena, by what follows it; end 0: none
};

}  // namespace oomrec::bundle

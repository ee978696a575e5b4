// /proc/self/maps, line by line, by raw system calls and in one small buffer.
//
// The descriptor lives as long as the object, is close-on-exec and never 0, 1 or 2. About 20 µs for
// a hundred mappings: only for a stack or module seen for the first time.
#pragma once

#include <cstdint>

#include "common/system/files.h"
#include "common/system/hook_scope.h"

namespace oomrec::stack {

struct MappedRange {
  std::uint64_t start, end;
  std::uint64_t file_offset;
  bool readable, writable, executable;
};

class MemoryMap {
 public:
  // Writes the path of each mapping to `path` (NUL-terminated, cut at `capacity`), if given.
  explicit MemoryMap(InHook, char* path = nullptr, std::uint32_t capacity = 0) noexcept;
  MemoryMap(const MemoryMap&) = delete;
  MemoryMap& operator=(const MemoryMap&) = delete;

  // The next mapping in address order; false at the end, or when the file could not be read.
  bool next(MappedRange&) noexcept;

 private:
  long read() noexcept;
  int get() noexcept;  // the next character, or -1
  std::uint64_t hexadecimal(int& last) noexcept;

  char* const path_;
  const std::uint32_t capacity_;
  system::File file_;
  bool has_text_ = false;  // something has been read
  std::uint32_t used_ = 0;
  std::uint32_t filled_ = 0;
  char buffer_[1024];
};

}  // namespace oomrec::stack

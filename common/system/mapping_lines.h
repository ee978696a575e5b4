// Reads /proc/PID/maps and smaps line by line in the caller's memory: either is too long for a
// buffer.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace oomrec::system {

// glibc aligns the pieces of further arenas to their largest size: malloc/arena.c, HEAP_MAX_SIZE.
inline constexpr std::uint64_t kArenaBytes = std::uint64_t{64} << 20;

class MappingLines {
 public:
  explicit MappingLines(std::span<char> text) noexcept : text_(text) {}

  // long read(char*, std::size_t): bytes read, 0 at the end, or negative. False: no more lines. A
  // line that does not fit belongs to a file with a very long path; its beginning is enough.
  template <class Read>
  bool next(std::string_view& line, Read&& read) noexcept {
    while (true) {
      const std::string_view unread{text_.data() + begin_, end_ - begin_};
      const std::size_t length = unread.find('\n');
      if (length != unread.npos || (begin_ == 0 && end_ == text_.size())) {
        line = unread.substr(0, length);
        begin_ += std::min(line.size() + 1, unread.size());
        return true;
      }
      std::memmove(text_.data(), unread.data(), unread.size());
      begin_ = 0;
      end_ = unread.size();
      const long got = read(text_.data() + end_, text_.size() - end_);
      if (got <= 0) return false;
      end_ += static_cast<std::size_t>(got);
    }
  }

 private:
  std::span<char> text_;
  std::size_t begin_ = 0, end_ = 0;  // the unread part of text_
};

// The number at the start of `text`, which loses it.
inline std::uint64_t take_hexadecimal(std::string_view& text) noexcept {
  std::uint64_t value = 0;
  for (; !text.empty(); text.remove_prefix(1)) {
    const char c = text.front();
    const int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
    if (digit < 0) break;
    value = value << 4 | static_cast<std::uint64_t>(digit);
  }
  return value;
}

}  // namespace oomrec::system

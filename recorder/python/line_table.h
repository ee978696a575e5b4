// A line table as the session stores it. The location table since Python 3.11 has columns, and an
// entry for nearly each instruction; only lines are recorded. What remains has the same format, and
// a third of the size.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string_view>

#include "common/session/python_lines.h"

namespace oomrec::stack {

class LineTableWriter {
 public:
  explicit LineTableWriter(std::span<char> to) noexcept : to_(to) {}

  // So many code units have this line, or none.
  void add(std::uint64_t units, bool has_line, std::int64_t line) noexcept {
    namespace tables = session::line_tables;
    constexpr std::uint64_t kMostUnits = 8;
    while (units != 0) {
      const std::uint64_t some = std::min(units, kMostUnits);
      const unsigned kind = has_line ? tables::kNoColumns : tables::kNone;
      put(0x80 | kind << 3 | static_cast<unsigned>(some - 1));
      if (has_line) put_signed_varint(line - line_);
      if (has_line) line_ = line;
      units -= some;
    }
  }
  // The table; empty: there was not enough space.
  std::string_view view() const noexcept {
    return used_ > to_.size() ? std::string_view{} : std::string_view{to_.data(), used_};
  }

 private:
  void put(unsigned byte) noexcept {
    if (used_ < to_.size()) to_[used_] = static_cast<char>(byte);
    ++used_;
  }
  void put_signed_varint(std::int64_t value) noexcept {
    const std::uint64_t magnitude = static_cast<std::uint64_t>(value < 0 ? -value : value);
    std::uint64_t rest = magnitude << 1 | (value < 0 ? 1 : 0);
    for (; rest > 0x3f; rest >>= 6) put(0x40 | (rest & 0x3f));
    put(static_cast<unsigned>(rest));
  }

  std::span<char> to_;
  std::size_t used_ = 0;
  std::int64_t line_ = 0;  // relative to the function's first
};

// Without columns, in `to`; `table` itself if it is of an older Python or if `to` is too small.
inline std::string_view lines_of(std::uint32_t version_hex, std::string_view table,
                                 std::span<char> to) noexcept {
  if (version_hex < session::kLocationTables) return table;
  LineTableWriter lines(to);
  std::uint64_t units = 0;
  bool has_line = false;
  std::int64_t line = 0;
  for (session::line_tables::Locations entries(table, 0); entries.next();) {
    if (units != 0 && (entries.has_line() != has_line || entries.line() != line)) {
      lines.add(units, has_line, line);
      units = 0;
    }
    has_line = entries.has_line();
    line = entries.line();
    units += entries.units();
  }
  lines.add(units, has_line, line);
  return lines.view().empty() ? table : lines.view();
}

}  // namespace oomrec::stack

// The line of a Python instruction, from a code object's line table as the interpreter stored it.
//
// Used by the tools on recordings and by the report inside a hook: allocates nothing and treats the
// table as hostile. A truncated or invalid table yields the function's first line, as does an
// instruction without a line.
//
// Formats: co_lnotab up to 3.9 (Objects/lnotab_notes.txt), co_linetable of 3.10 (PEP 626), the
// location table since 3.11 (Objects/locations.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace oomrec::session {

// Offset of a frame that has not started: its line is the first.
inline constexpr std::uint32_t kNoInstruction = 0xffff'ffff;

inline constexpr std::uint32_t kLocationTables = 0x030b0000;  // the first version that has them

namespace line_tables {

inline std::uint8_t byte_at(std::string_view table, std::size_t i) noexcept {
  return static_cast<std::uint8_t>(table[i]);
}

// Pairs (bytes of code, signed line delta): the line changes after these bytes of code.
inline std::int64_t from_pairs(std::string_view table, std::int64_t line,
                               std::uint32_t instruction) noexcept {
  std::uint64_t address = 0;
  for (std::size_t i = 0; i + 1 < table.size(); i += 2) {
    address += byte_at(table, i);
    if (address > instruction) break;
    line += static_cast<std::int8_t>(table[i + 1]);
  }
  return line;
}

// Pairs (bytes covered, signed line delta); -128: these bytes have no line.
inline std::int64_t from_ranges(std::string_view table, std::int64_t first,
                                std::uint32_t instruction) noexcept {
  constexpr int kNoLine = -128;
  std::int64_t line = first;
  std::uint64_t end = 0;
  for (std::size_t i = 0; i + 1 < table.size(); i += 2) {
    const int delta = static_cast<std::int8_t>(table[i + 1]);
    end += byte_at(table, i);
    if (delta != kNoLine) line += delta;
    if (instruction < end) return delta == kNoLine ? first : line;
  }
  return first;
}

// Six bits per byte, least significant first; bit 6: more follow.
inline std::uint64_t read_varint(std::string_view table, std::size_t& at) noexcept {
  std::uint64_t value = 0;
  for (unsigned shift = 0; at < table.size() && shift < 60; shift += 6) {
    const std::uint8_t byte = byte_at(table, at++);
    value |= std::uint64_t{byte & 0x3fu} << shift;
    if ((byte & 0x40) == 0) break;
  }
  return value;
}
inline std::int64_t read_signed_varint(std::string_view table, std::size_t& at) noexcept {
  const std::uint64_t value = read_varint(table, at);
  const auto magnitude = static_cast<std::int64_t>(value >> 1);
  return (value & 1) != 0 ? -magnitude : magnitude;
}

// Entries 1kkkkccc: kind k covers ccc + 1 code units of two bytes; line and columns follow by kind.
inline constexpr unsigned kOneLine0 = 10, kOneLine2 = 12, kNoColumns = 13, kLong = 14, kNone = 15;

class Locations {
 public:
  Locations(std::string_view table, std::int64_t first) noexcept : table_(table), line_(first) {}

  // The next entry. False: the end, or no valid entry.
  bool next() noexcept {
    if (at_ >= table_.size()) return false;
    const std::uint8_t head = byte_at(table_, at_++);
    if ((head & 0x80) == 0) return false;
    const unsigned kind = (head >> 3) & 0xf;
    units_ = (head & 7u) + 1;
    has_line_ = kind != kNone;
    if (kind == kLong || kind == kNoColumns) {
      line_ += read_signed_varint(table_, at_);
      for (int skipped = 0; kind == kLong && skipped < 3; ++skipped) read_varint(table_, at_);
    } else if (kind >= kOneLine0 && kind <= kOneLine2) {
      line_ += kind - kOneLine0;
      at_ += 2;
    } else if (kind < kOneLine0) {
      at_ += 1;
    }
    return true;
  }
  unsigned units() const noexcept { return units_; }
  bool has_line() const noexcept { return has_line_; }
  // Of this entry, or of the last one that has a line.
  std::int64_t line() const noexcept { return line_; }

 private:
  std::string_view table_;
  std::size_t at_ = 0;
  std::int64_t line_;
  unsigned units_ = 0;
  bool has_line_ = false;
};

inline std::int64_t from_locations(std::string_view table, std::int64_t first,
                                   std::uint32_t instruction) noexcept {
  const std::uint64_t unit = instruction / 2;
  std::uint64_t end = 0;
  for (Locations entries(table, first); entries.next();) {
    end += entries.units();
    if (unit < end) return entries.has_line() ? entries.line() : first;
  }
  return first;
}

}  // namespace line_tables

// Line of the instruction at byte `instruction` of the bytecode (kNoInstruction: none yet).
// `version_hex` is Header::python.version_hex; `first_line` and `line_table` are those of the code.
inline std::uint32_t python_line(std::uint32_t version_hex, std::uint32_t first_line,
                                 std::string_view line_table, std::uint32_t instruction) noexcept {
  if (instruction == kNoInstruction) return first_line;
  std::int64_t line = first_line;
  if (version_hex < 0x030a0000) {
    line = line_tables::from_pairs(line_table, first_line, instruction);
  } else if (version_hex < kLocationTables) {
    line = line_tables::from_ranges(line_table, first_line, instruction);
  } else {
    line = line_tables::from_locations(line_table, first_line, instruction);
  }
  return line > 0 && line <= INT32_MAX ? static_cast<std::uint32_t>(line) : first_line;
}

}  // namespace oomrec::session

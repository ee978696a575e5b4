// The fingerprint of a code object: what is compared before anything known by its address is
// believed.
//
// From 3.12 on the version alone would do within one interpreter, which counts its code objects;
// the pointers tell those of several apart. Up to 3.11 nothing in a code object is unique; there
// the pointers alone are wrong in 2 % of a worst case (functions made in a loop that differ only in
// their line tables), and with the table's size and ends in none of 20,000. An object that a frame
// refers to is alive, so all of this may be read.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <string_view>

#include "recorder/python/interpreter.h"

namespace oomrec::stack {

inline std::uint64_t mix(std::uint64_t a, std::uint64_t b) noexcept {
  const auto product =
      static_cast<unsigned __int128>(a ^ 0x9e3779b97f4a7c15) * (b ^ 0xd6e8feb86659fd93);
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

[[gnu::always_inline]] inline std::string_view bytes_object(const PythonOffsets& at,
                                                            std::uint64_t object) noexcept {
  if (object == 0) return {};
  const auto bytes = load<std::int64_t>(object + at.bytes_size);
  if (bytes <= 0 || bytes > INT32_MAX) return {};
  return {reinterpret_cast<const char*>(object + at.bytes_data), static_cast<std::size_t>(bytes)};
}

// Of a table that is no longer than 7 bytes, or none.
[[gnu::noinline]] inline std::uint64_t short_table_fingerprint(std::string_view table,
                                                               std::uint64_t first_line) noexcept {
  std::uint64_t bytes = 0;
  std::copy(table.begin(), table.end(), reinterpret_cast<char*>(&bytes));
  return mix(table.size() << 32 ^ first_line, bytes);
}

// Different in any case for tables that differ in one of these: first line and size, the first 8
// bytes, the last 8.
[[gnu::always_inline]] inline std::uint64_t line_table_fingerprint(
    const PythonOffsets& at, std::uint64_t object, std::uint64_t first_line) noexcept {
  const std::string_view table = bytes_object(at, object);
  if (table.size() < 8) return short_table_fingerprint(table, first_line);
  const auto first = reinterpret_cast<std::uint64_t>(table.data());
  const std::uint64_t start = load<std::uint64_t>(first) ^ (table.size() << 32 ^ first_line);
  return std::rotl(start * 0x9e3779b97f4a7c15u, 32) ^ load<std::uint64_t>(first + table.size() - 8);
}

// `at`: a constant where the caller knows the version.
[[gnu::always_inline]] inline CodeFingerprint code_fingerprint(const PythonOffsets& at,
                                                               std::uint64_t code) noexcept {
  CodeFingerprint fingerprint;
  fingerprint.file = load<std::uint64_t>(code + at.code_file);
  fingerprint.name = load<std::uint64_t>(code + at.code_name);
  fingerprint.line_table = load<std::uint64_t>(code + at.code_line_table);
  fingerprint.version =
      at.code_version == PythonOffsets::kAbsent ? 0 : load<std::uint32_t>(code + at.code_version);
  if (fingerprint.version == 0) {  // none, or the counter has reached its end
    fingerprint.version = line_table_fingerprint(at, fingerprint.line_table,
                                                 load<std::uint32_t>(code + at.code_first_line));
  }
  return fingerprint;
}

}  // namespace oomrec::stack

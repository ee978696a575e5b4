// The fingerprint of a code object, which validates cache entries keyed by its address.
//
// From 3.12 on each interpreter numbers its code objects, so the version suffices within one; the
// pointers distinguish several interpreters. Up to 3.11 nothing in a code object is unique: the
// pointers alone are wrong in 2 % of a worst case (functions made in a loop that differ only in
// their line tables), and in none of 20,000 with the table's size and ends. A frame keeps its code
// object alive, so all of this may be read.
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

// For a table of at most 7 bytes, or none.
[[gnu::noinline]] inline std::uint64_t short_table_fingerprint(std::string_view table,
                                                               std::uint64_t first_line) noexcept {
  std::uint64_t bytes = 0;
  std::copy(table.begin(), table.end(), reinterpret_cast<char*>(&bytes));
  return mix(table.size() << 32 ^ first_line, bytes);
}

// Always different for tables that differ in one of these: first line and size, the first 8 bytes,
// the last 8.
[[gnu::always_inline]] inline std::uint64_t line_table_fingerprint(
    const PythonOffsets& at, std::uint64_t object, std::uint64_t first_line) noexcept {
  const std::string_view table = bytes_object(at, object);
  if (table.size() < 8) return short_table_fingerprint(table, first_line);
  const auto first = reinterpret_cast<std::uint64_t>(table.data());
  const std::uint64_t start = load<std::uint64_t>(first) ^ (table.size() << 32 ^ first_line);
  return std::rotl(start * 0x9e3779b97f4a7c15u, 32) ^ load<std::uint64_t>(first + table.size() - 8);
}

// `at`: a constant if the caller is compiled for one version.
[[gnu::always_inline]] inline CodeFingerprint code_fingerprint(const PythonOffsets& at,
                                                               std::uint64_t code) noexcept {
  CodeFingerprint fingerprint;
  fingerprint.file = load<std::uint64_t>(code + at.code_file);
  fingerprint.name = load<std::uint64_t>(code + at.code_name);
  fingerprint.line_table = load<std::uint64_t>(code + at.code_line_table);
  fingerprint.version =
      at.code_version == PythonOffsets::kAbsent ? 0 : load<std::uint32_t>(code + at.code_version);
  if (fingerprint.version == 0) {  // no counter, or it has overflowed
    fingerprint.version = line_table_fingerprint(at, fingerprint.line_table,
                                                 load<std::uint32_t>(code + at.code_first_line));
  }
  return fingerprint;
}

}  // namespace oomrec::stack

// The cache file of one module's symbols: encoding and lookup.
//
// A file may be truncated, damaged or forged. It is used only if its size, checksum and key match,
// and every index is checked when it is used. Only the entries that are looked up are decoded.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/recording/symbolize/module_symbols.h"

namespace oomrec::tools::recording {

class SymbolCacheFile {
 public:
  using Answers = std::map<std::uint64_t, std::vector<LineInfo>>;  // by address

  SymbolCacheFile() = default;  // empty
  // Also empty if `bytes` were not made by bytes_of() for the same `key`.
  SymbolCacheFile(std::string bytes, std::string_view key);

  // The cached answer of ModuleSymbols::find(); nothing: not cached. Cost: a binary search.
  std::optional<std::vector<LineInfo>> find(std::uint64_t address) const;
  Answers all() const;

  static std::string bytes_of(const Answers& answers, std::string_view key);

  // For checksums and file names; not cryptographic.
  static std::uint64_t hash_of(std::string_view text);
  // The checksum covers the bytes from this offset on, and is in the 8 bytes before it.
  static constexpr std::size_t kChecksumStart = 16;

 private:
  template <class Row>
  Row row(std::size_t table_at, std::size_t index) const;
  std::optional<std::vector<LineInfo>> lines(std::uint32_t first, std::uint32_t count) const;

  std::string bytes_;
  std::uint32_t entries_ = 0;
  std::uint32_t lines_ = 0;
  std::size_t locations_at_ = 0;
  std::size_t text_at_ = 0;
};

}  // namespace oomrec::tools::recording

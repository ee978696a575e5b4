// The names of one module's addresses as bytes, to be kept from one command to the next.
//
// The bytes may be cut, damaged or forged: they count only when they are whole and were written for
// the same key, and every index in them is checked when it is used. Nothing is taken apart that is
// not looked up.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/recording/symbolize/module_symbols.h"

namespace oomrec::tools::recording {

class KnownSymbols {
 public:
  using Answers = std::map<std::uint64_t, std::vector<Location>>;  // by address

  KnownSymbols() = default;  // knows nothing
  // Knows nothing either when `bytes` are not what bytes_of() made for `key`.
  KnownSymbols(std::string bytes, std::string_view key);

  // What ModuleSymbols::find() answered; nothing when it was never asked. Cost: a binary search.
  std::optional<std::vector<Location>> find(std::uint64_t address) const;
  Answers all() const;

  static std::string bytes_of(const Answers& answers, std::string_view key);

  // For checks and names, not against forgers.
  static std::uint64_t hash_of(std::string_view text);
  // What is behind this offset of the bytes has its hash in the 8 bytes before it.
  static constexpr std::size_t kChecked = 16;

 private:
  template <class Row>
  Row row(std::size_t table_at, std::size_t index) const;
  std::optional<std::vector<Location>> locations(std::uint32_t first, std::uint32_t count) const;

  std::string bytes_;
  std::uint32_t entries_ = 0;
  std::uint32_t locations_ = 0;
  std::size_t locations_at_ = 0;
  std::size_t text_at_ = 0;
};

}  // namespace oomrec::tools::recording

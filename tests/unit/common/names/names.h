// Checks of functions that read mangled symbols.
#pragma once

#include <doctest/doctest.h>

#include <string>
#include <string_view>

#include "common/names/names.h"

namespace oomrec::tests {

inline std::string named(std::string_view symbol) {
  char buffer[512];
  return std::string{names::cython_or_rust_name(symbol, buffer)};
}

// Reads the symbol cut anywhere, from the start of memory of exactly its size, into a buffer that
// is too small: under the sanitizers this finds every read or write beyond the end.
inline void check_cut_anywhere(std::string_view symbol) {
  for (std::size_t bytes = 0; bytes <= symbol.size(); ++bytes) {
    const std::string exact{symbol.substr(0, bytes)};
    char small[16];
    CHECK(names::short_name(exact, small).size() <= std::max(exact.size(), sizeof small - 1));
  }
}

}  // namespace oomrec::tests

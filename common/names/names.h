// Mangled symbols as the names in their source.
//
// Allocates nothing, takes bounded time, and trusts no symbol. A name that does not fit is cut at
// the buffer's end.
#pragma once

#include <span>
#include <string_view>

namespace oomrec::names {

// The name of a Cython or Rust function, in `buffer`. Empty: the symbol is neither.
std::string_view cython_or_rust_name(std::string_view symbol, std::span<char> buffer) noexcept;

// The same, and C++ names without parameters and template arguments. Other symbols are returned
// as they are.
std::string_view short_name(std::string_view symbol, std::span<char> buffer) noexcept;

}  // namespace oomrec::names

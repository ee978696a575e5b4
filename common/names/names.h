// Mangled symbols as the names in their source.
//
// Allocates nothing, takes bounded time, and trusts no symbol. A name that does not fit is cut at
// the buffer's end.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "common/text/text.h"

namespace oomrec::names {

// The name of a Cython or Rust function, in `buffer`. Empty: the symbol is neither.
std::string_view cython_or_rust_name(std::string_view symbol, std::span<char> buffer) noexcept;

// The same, and C++ names without parameters and template arguments. Other symbols are returned
// as they are.
std::string_view short_name(std::string_view symbol, std::span<char> buffer) noexcept;

// --- For the sources of this folder: one of them for each kind of mangling

constexpr bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }

// Takes the number at the start of the text: a length, which mangled names put before their parts.
// More than what remains of the text if there is none, or if it is larger than that.
constexpr std::size_t take_length(std::string_view& text) noexcept {
  const std::size_t most = text.size();
  if (text.empty() || !is_digit(text[0])) return most + 1;
  std::size_t length = 0;
  while (!text.empty() && is_digit(text[0]) && length <= most) {
    length = length * 10 + static_cast<std::size_t>(text[0] - '0');
    text.remove_prefix(1);
  }
  return length;
}

// A short C++ name in `buffer`: "train::Model::grow" for _ZN5train5Model4growEm. Scopes and names
// only, no parameters or template arguments; the tools print full names. `symbol` itself when it is
// not a C++ symbol, or has parts that this parser does not support (lambdas, local functions, most
// operators, expansions of substitutions).
std::string_view short_cxx_name(std::string_view symbol, std::span<char> buffer) noexcept;

// The name of a Cython function: "numpy.random._generator.Generator.standard_normal" for
// __pyx_pw_5numpy_6random_10_generator_9Generator_31standard_normal. False: the
// symbol is not that of a function in a .pyx file, or truncated; `out` then holds part of a name.
bool add_cython_name(text::Text& out, std::string_view symbol) noexcept;

// Names of Rust functions. Both leave out what only tells builds of a crate apart: hashes and
// disambiguators. They return false if the symbol is not of that kind, or truncated; `out` then
// holds part of a name.
//
// RFC 2603: "<train::Row<u32, 4>>::push" for _RNvMCs4Jz_5trainINtB2_3RowmKj4_E4push.
bool add_rust_v0_name(text::Text& out, std::string_view symbol) noexcept;

// The form before: "train::push" for _ZN5train4push17h39881ba72e98ccdeE.
bool add_rust_legacy_name(text::Text& out, std::string_view symbol) noexcept;

}  // namespace oomrec::names

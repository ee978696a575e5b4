// Secrets that are known by their shape alone, whatever stands before them: ghp_…, AKIA…, JWTs,
// private keys, passwords and tokens in URLs.
#pragma once

#include <cstddef>
#include <string_view>

namespace oomrec::session {

// A part of a text; empty: none.
struct Span {
  std::size_t start = 0;
  std::size_t end = 0;

  bool empty() const noexcept { return start == end; }
};

// The secret whose shape begins at `text[at]`.
Span secret_shape_at(std::string_view text, std::size_t at) noexcept;

}  // namespace oomrec::session

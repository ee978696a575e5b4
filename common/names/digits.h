// Decimal lengths, which mangled names put before their parts.
#pragma once

#include <cstddef>
#include <string_view>

namespace oomrec::names {

constexpr bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }

// Takes the number at the start of the text. More than what remains of the text if there is none,
// or if it is larger than that.
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

}  // namespace oomrec::names

// Parses numbers in text.
#pragma once

#include <charconv>
#include <cstddef>
#include <optional>
#include <string_view>
#include <system_error>
#include <type_traits>

namespace oomrec::tools {

// Parses the number at the start of `text`, and removes it from `text`. nullopt, with `text`
// unchanged, if there is none or it does not fit. Blanks and a plus sign are not skipped; a
// floating-point number may be "inf" or "nan".
template <class Number>
std::optional<Number> take_number(std::string_view& text, int base = 10) {
  Number number{};
  const char* const begin = text.data();
  std::from_chars_result read{};
  if constexpr (std::is_integral_v<Number>)
    read = std::from_chars(begin, begin + text.size(), number, base);
  else
    read = std::from_chars(begin, begin + text.size(), number);
  if (read.ec != std::errc{}) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(read.ptr - begin));
  return number;
}

// Parses all of `text`; nullopt if anything else is in it.
template <class Number>
std::optional<Number> parse_number(std::string_view text, int base = 10) {
  const auto number = take_number<Number>(text, base);
  return text.empty() ? number : std::nullopt;
}

}  // namespace oomrec::tools

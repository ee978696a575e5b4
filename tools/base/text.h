// Text for all commands: sizes, shares, times; quoted, clipped, printable and masked text; numbers
// in text.
#pragma once

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <vector>

namespace oomrec::tools {

// "412.0 MiB"; below 1 KiB "17 B". Powers of 1024.
std::string size_text(std::uint64_t bytes);

// "1,234,567".
std::string count_text(std::uint64_t count);

// 0 of nothing.
double share_of(std::uint64_t part, std::uint64_t whole);

// "12.3 %". `share`: 0 to 1.
std::string percent_text(double share);

// ISO 8601 in UTC, with Z. `realtime_ns`: since 1970.
std::string time_text(std::uint64_t realtime_ns);
// The reverse, in nanoseconds with the precision of a second; 0 for any other text.
std::uint64_t time_of_text(const std::string& text);

// "0.4 s", "19.6 s", "3 min 20 s", "2 h 36 min", "5 days 3 h", "more than 10 years".
std::string duration_text(double seconds);

// "3 blocks", "1 block".
std::string plural(std::uint64_t count, std::string_view one, std::string_view many);

// Length in bytes of the longest prefix that is valid UTF-8.
std::size_t utf8_prefix(std::string_view text);
// Whether `text` is an incomplete UTF-8 character.
bool is_cut_character(std::string_view text);

// Makes untrusted text of a recording safe for a terminal: control characters and bidirectional
// overrides become '?', invalid UTF-8 becomes U+FFFD.
std::string printable(std::string_view text);

// The same, in at most so many bytes, without half a character at the end.
std::string printable_prefix(std::string_view text, std::size_t most_bytes);

// Escapes the same characters in JSON as \uXXXX, which keeps its meaning; line breaks stay.
std::string with_controls_escaped(std::string json);

// In single quotes, for every shell.
std::string single_quoted(std::string_view text);

// A word of a command line, quoted if necessary.
std::string shell_word(std::string_view text);

// Code points: the columns of printable text.
std::size_t width(std::string_view text);

// At most `columns` code points, cut at the end or, for paths, at the start. "…" marks the cut.
std::string clip(std::string_view text, std::size_t columns);
std::string clip_start(std::string_view text, std::size_t columns);

// Wraps at blanks to `columns`. All lines start at column `indent`; the caller indents the first.
std::string wrap(std::string_view text, std::size_t columns, std::size_t indent);

// The word of `words` that `typed` most probably means; empty if none is similar.
std::string_view nearest(std::string_view typed, const std::vector<std::string_view>& words);

std::vector<std::string_view> split(std::string_view text, char separator);

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

// Command lines without their passwords (common/session/secrets.h), for everything that is written
// or shown. `arguments`: with a NUL after each, as in /proc/PID/cmdline.
std::string mask_secrets(std::string arguments);
std::vector<std::string> masked_words(const std::vector<std::string>& words);

}  // namespace oomrec::tools

namespace oomrec::tools::sections {}  // namespace oomrec::tools::sections

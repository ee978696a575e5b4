// Formats text for all commands: sizes, shares, times; quoted, clipped and printable text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
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

}  // namespace oomrec::tools

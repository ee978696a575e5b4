// Words and figures as every command prints them: sizes, shares, times, clipped and safe text.
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

// "12.3 %" of a share 0…1.
std::string percent_text(double share);

// ISO 8601 UTC with Z, of nanoseconds since 1970.
std::string time_text(std::uint64_t realtime_ns);
// The reverse, to the second; 0 for anything else.
std::uint64_t time_of_text(const std::string& text);

// "3 blocks", "1 block".
std::string plural(std::uint64_t count, std::string_view one, std::string_view many);

// Of the longest part at the start of `text` that is UTF-8, in bytes.
std::size_t utf8_prefix(std::string_view text);
// Whether `text` is the beginning of one character, and no more.
bool is_cut_character(std::string_view text);

// What comes from a recording may hold anything: control characters and those that turn text around
// become '?', so that nothing reaches the terminal as a command, and bytes that are no UTF-8 become
// U+FFFD.
std::string printable(std::string_view text);

// The same characters of valid JSON as \uXXXX, which means the same; line breaks stay.
std::string with_commands_escaped(std::string_view json);

// In single quotes, as every shell reads it.
std::string quoted(std::string_view text);

// A word of a command line: quoted where it has to be.
std::string shell_word(std::string_view text);

// At most `columns` wide (code points), cut at the end or, for paths, at the start; marked by "…".
std::string clip(std::string_view text, std::size_t columns);
std::string clip_start(std::string_view text, std::size_t columns);

// Wraps at blanks to `columns`; the first line begins at column `indent`, and so do the others.
std::string wrap(std::string_view text, std::size_t columns, std::size_t indent);

// The word of `words` that `typed` was probably meant to be; empty when none is near.
std::string_view nearest(std::string_view typed, const std::vector<std::string_view>& words);

std::vector<std::string_view> split(std::string_view text, char separator);

}  // namespace oomrec::tools

// Text by the columns that a terminal gives it: wide characters take two, combining ones none.
// What comes from a recording must have passed printable() before.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace oomrec::tools::views {

// Takes the character set, and nothing else, from the environment: numbers stay as they are.
// True: the terminal's is UTF-8. Asked before a picture is made for one.
bool terminal_speaks_utf8();

std::size_t columns_of(std::string_view text);

// Cut to `columns`, with "…" at the end where it was longer; and the same, filled up with blanks.
std::string cut(std::string_view text, std::size_t columns);
std::string fitted(std::string_view text, std::size_t columns);

// What is no ASCII becomes '?', or the ASCII that stands for it: a frame, an ellipsis, a bullet.
std::string in_ascii(std::string_view text);

}  // namespace oomrec::tools::views

// The width of text in terminal columns: wide characters take two, combining characters none. Text
// from a recording must have passed printable().
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "tools/views/screen/picture.h"

namespace oomrec::tools::views {

// The character set of the locale. The first call sets LC_CTYPE from the environment, and no other
// category: the format of numbers stays. Call it before drawing for a terminal.
Charset terminal_charset();

std::size_t columns_of(std::string_view text);

// Cut to `columns`, with "…" at the end if it was longer. fitted() also pads with blanks.
std::string cut(std::string_view text, std::size_t columns);
std::string fitted(std::string_view text, std::size_t columns);

// Replaces each non-ASCII character by '?', or by a similar ASCII character for frames, arrows,
// ellipses and bullets.
std::string in_ascii(std::string_view text);

}  // namespace oomrec::tools::views

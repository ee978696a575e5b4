// What a view shows: lines of coloured text, independent of any terminal. A view is a function of
// its figures, so tests need no terminal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tools/base/terminal.h"

namespace oomrec::tools::views {

enum class Charset : std::uint8_t { ascii, utf8 };

struct Span {
  std::string text;  // printable
  Colour colour = Colour::plain;
};

struct Line {
  std::vector<Span> spans;
  bool reversed = false;  // in reverse video, over the whole width

  Line() = default;
  explicit Line(std::string text, Colour colour = Colour::plain)
      : spans{{std::move(text), colour}} {}
  // A title, heading or footer: reversed.
  static Line bar(std::string text) {
    Line line{std::move(text)};
    line.reversed = true;
    return line;
  }

  Line& add(std::string text, Colour colour = Colour::plain) {
    spans.push_back({std::move(text), colour});
    return *this;
  }
  std::size_t columns() const;
  // Adds blanks up to a column, at least one.
  Line& blanks_to(std::size_t column);
  std::string text() const;
};

using Picture = std::vector<Line>;

struct Size {
  std::size_t columns = 80, rows = 24;
  bool operator==(const Size&) const = default;
};

// For pipes and terminals without a screen: the lines cut to `columns`, without trailing blanks.
std::string as_text(const Picture&, const Terminal&, std::size_t columns, Charset charset);

// The character set of the locale. The first call sets LC_CTYPE from the environment, and no other
// category: the format of numbers stays. Call it before drawing for a terminal.
Charset terminal_charset();

// The width of text in terminal columns: wide characters take two, combining characters none. Text
// from a recording must have passed printable().
std::size_t columns_of(std::string_view text);

// Cut to `columns`, with "…" at the end if it was longer. fitted() also pads with blanks.
std::string cut(std::string_view text, std::size_t columns);
std::string fitted(std::string_view text, std::size_t columns);

// Replaces each non-ASCII character by '?', or by a similar ASCII character for frames, arrows,
// ellipses and bullets.
std::string in_ascii(std::string_view text);

}  // namespace oomrec::tools::views

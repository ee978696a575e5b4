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

}  // namespace oomrec::tools::views

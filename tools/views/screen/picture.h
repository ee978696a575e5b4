// What a view shows: lines of text with their colours, and nothing of how they reach a terminal.
// So a view is a function of its figures, and is tested without a terminal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "tools/base/terminal.h"

namespace oomrec::tools::views {

struct Span {
  std::string text;  // printable
  Colour colour = Colour::plain;
};

struct Line {
  std::vector<Span> spans;
  bool reversed = false;  // a heading, or the row that is chosen: over the whole width

  Line() = default;
  explicit Line(std::string text, Colour colour = Colour::plain, bool is_reversed = false)
      : spans{{std::move(text), colour}}, reversed(is_reversed) {}

  Line& add(std::string text, Colour colour = Colour::plain) {
    spans.push_back({std::move(text), colour});
    return *this;
  }
  std::size_t columns() const;
  // Blanks up to a column; one at least.
  Line& blanks_to(std::size_t column);
  std::string text() const;
};

using Picture = std::vector<Line>;

struct Size {
  std::size_t columns = 80, rows = 24;
  bool operator==(const Size&) const = default;
};

// For pipes and terminals without a screen: lines as they are, cut to `columns`, without blanks at
// their ends. `utf8`: else in ASCII.
std::string as_text(const Picture&, const Terminal&, std::size_t columns, bool utf8);

}  // namespace oomrec::tools::views

#include "tools/views/screen/picture.h"

#include <algorithm>

#include "tools/views/screen/columns.h"

namespace oomrec::tools::views {

std::size_t Line::columns() const {
  std::size_t sum = 0;
  for (const Span& span : spans) sum += columns_of(span.text);
  return sum;
}

Line& Line::blanks_to(std::size_t column) {
  const std::size_t used = columns();
  return add(std::string(column > used ? column - used : 1, ' '));
}

std::string Line::text() const {
  std::string all;
  for (const Span& span : spans) all += span.text;
  return all;
}

std::string as_text(const Picture& picture, const Terminal& terminal, std::size_t columns,
                    Charset charset) {
  std::string text;
  for (const Line& line : picture) {
    std::size_t left = columns;
    std::size_t end = text.size();  // after the last span that is not blank
    for (const Span& span : line.spans) {
      const std::string shown = cut(span.text, left);
      left -= std::min(left, columns_of(shown));
      text += terminal.paint(span.colour, charset == Charset::utf8 ? shown : in_ascii(shown));
      if (shown.find_last_not_of(' ') != shown.npos) end = text.size();
      if (left == 0) break;
    }
    text.resize(end);
    while (text.ends_with(' ')) text.pop_back();
    text += '\n';
  }
  return text;
}

}  // namespace oomrec::tools::views

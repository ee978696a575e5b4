#include "tools/views/screen/picture.h"

#include <langinfo.h>

#include <algorithm>
#include <clocale>
#include <cwchar>
#include <utility>

#include "common/text/text.h"

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

namespace {

struct Character {
  std::string_view bytes;
  std::size_t columns;
};

// The first character of `text`, which is UTF-8 or ASCII.
Character first_of(std::string_view text) {
  const std::string_view bytes = text.substr(0, std::max<std::size_t>(text::utf8_bytes(text), 1));
  if (bytes.size() == 1) return {bytes, 1};
  const int columns = wcwidth(static_cast<wchar_t>(text::code_point(bytes)));
  return {bytes, columns < 0 ? 1U : static_cast<std::size_t>(columns)};
}

constexpr std::pair<std::string_view, std::string_view> kInAscii[] = {
    {"…", "~"}, {"←", "<"}, {"→", ">"}, {"↑", "^"}, {"↓", "v"}, {"·", "-"},
    {"│", "|"}, {"├", "+"}, {"└", "`"}, {"─", "-"}, {"┄", "-"}, {"┤", "|"},
    {"▸", "+"}, {"▾", "-"}, {"×", "x"}, {"▲", "^"}, {"¶", "!"},
};

}  // namespace

Charset terminal_charset() {
  static const Charset charset = [] {
    std::setlocale(LC_CTYPE, "");
    return std::string_view{nl_langinfo(CODESET)} == "UTF-8" ? Charset::utf8 : Charset::ascii;
  }();
  return charset;
}

std::size_t columns_of(std::string_view text) {
  std::size_t columns = 0;
  while (!text.empty()) {
    const Character first = first_of(text);
    columns += first.columns;
    text.remove_prefix(first.bytes.size());
  }
  return columns;
}

std::string cut(std::string_view text, std::size_t columns) {
  if (columns == 0) return {};
  if (columns_of(text) <= columns) return std::string{text};
  std::size_t used = 0;
  std::size_t end = 0;
  while (true) {
    const Character next = first_of(text.substr(end));
    if (used + next.columns > columns - 1) return std::string{text.substr(0, end)} + "…";
    used += next.columns;
    end += next.bytes.size();
  }
}

std::string fitted(std::string_view text, std::size_t columns) {
  std::string result = cut(text, columns);
  result.append(columns - columns_of(result), ' ');
  return result;
}

std::string in_ascii(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const Character first = first_of(text);
    std::string_view shown = first.bytes.size() == 1 ? first.bytes : "?";
    for (const auto& [unicode, ascii] : kInAscii)
      if (first.bytes == unicode) shown = ascii;
    if (first.columns != 0) result += shown;
    text.remove_prefix(first.bytes.size());
  }
  return result;
}

}  // namespace oomrec::tools::views

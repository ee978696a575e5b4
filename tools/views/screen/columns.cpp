#include "tools/views/screen/columns.h"

#include <langinfo.h>

#include <algorithm>
#include <clocale>
#include <cwchar>
#include <utility>

#include "common/text/text.h"

namespace oomrec::tools::views {
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

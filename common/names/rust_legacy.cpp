#include <algorithm>

#include "common/names/names.h"
#include "common/text/text.h"

namespace oomrec::names {
namespace {

constexpr int hexadecimal_digit(char c) noexcept {
  if (is_digit(c)) return c - '0';
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

// Takes the length and so many characters. Empty: the text begins otherwise, or is too short.
std::string_view take_part(std::string_view& rest) noexcept {
  const std::size_t length = take_length(rest);
  if (length > rest.size()) return {};
  const std::string_view part = rest.substr(0, length);
  rest.remove_prefix(length);
  return part;
}

bool is_hash(std::string_view part) noexcept {
  return part.size() == 17 && part[0] == 'h' &&
         std::all_of(part.begin() + 1, part.end(),
                     [](char c) { return hexadecimal_digit(c) >= 0; });
}

// Adds the character that "$LT$" or "$u7b$" stands for. False: it stands for none.
bool add_escaped(text::Text& out, std::string_view word) noexcept {
  struct Escape {
    std::string_view word;
    char character;
  };
  static constexpr Escape kEscapes[] = {{"SP", '@'}, {"BP", '*'}, {"RF", '&'}, {"LT", '<'},
                                        {"GT", '>'}, {"LP", '('}, {"RP", ')'}, {"C", ','}};
  for (const Escape& escape : kEscapes)
    if (word == escape.word) return out.add(escape.character), true;
  if (word.size() < 2 || word.size() > 7 || word[0] != 'u') return false;
  char32_t value = 0;
  for (const char c : word.substr(1)) {
    if (hexadecimal_digit(c) < 0) return false;
    value = value * 16 + static_cast<char32_t>(hexadecimal_digit(c));
  }
  char bytes[4];
  const std::string_view character = text::utf8_of(value, bytes);
  out.add(character);
  return !character.empty();
}

void add_part(text::Text& out, std::string_view part) noexcept {
  if (part.starts_with("_$")) part.remove_prefix(1);
  while (!part.empty()) {
    if (part.starts_with("..")) {
      out.add("::");
      part.remove_prefix(2);
      continue;
    }
    const auto end = part[0] == '$' ? part.find('$', 1) : part.npos;
    if (end != part.npos && add_escaped(out, part.substr(1, end - 1))) {
      part.remove_prefix(end + 1);
      continue;
    }
    out.add(part[0]);
    part.remove_prefix(1);
  }
}

}  // namespace

bool add_rust_legacy_name(text::Text& out, std::string_view symbol) noexcept {
  if (!symbol.starts_with("_ZN")) return false;
  std::string_view rest = symbol.substr(3);
  std::string_view part = take_part(rest);
  bool is_first = true;
  while (!part.empty() && !is_hash(part)) {
    if (!is_first) out.add("::");
    is_first = false;
    add_part(out, part);
    part = take_part(rest);
  }
  return !is_first && is_hash(part) && rest.starts_with('E');
}

}  // namespace oomrec::names

#include "tools/views/screen/prompt.h"

#include <algorithm>

namespace oomrec::tools::views {
namespace {

void drop_last_character(std::string& text) {
  while (!text.empty() && (text.back() & 0xc0) == 0x80) text.pop_back();
  if (!text.empty()) text.pop_back();
}

char lower(char letter) {
  return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
}

}  // namespace

std::string in_utf8(char32_t code) {
  const auto tail = [&](unsigned shift) {
    return static_cast<char>(0x80 | (code >> shift & 0x3f));
  };
  if (code < 0x80) return {static_cast<char>(code)};
  if (code < 0x800) return {static_cast<char>(0xc0 | code >> 6), tail(0)};
  if (code < 0x10000) return {static_cast<char>(0xe0 | code >> 12), tail(6), tail(0)};
  return {static_cast<char>(0xf0 | code >> 18), tail(12), tail(6), tail(0)};
}

Prompt::Answer Prompt::key(Key key) {
  if (key == Key::enter) return Answer::accepted;
  if (key == Key::escape || key == Key::interrupt) return Answer::cancelled;
  if (key == Key::backspace)
    drop_last_character(text_);
  else if (character(key) >= U' ' && character(key) < 0x110000)
    text_ += in_utf8(character(key));
  return Answer::editing;
}

bool contains_ignoring_case(std::string_view text, std::string_view part) {
  const auto found = std::search(text.begin(), text.end(), part.begin(), part.end(),
                                 [](char a, char b) { return lower(a) == lower(b); });
  return found != text.end() || part.empty();
}

}  // namespace oomrec::tools::views

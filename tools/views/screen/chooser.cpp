#include "tools/views/screen/chooser.h"

#include <algorithm>

namespace oomrec::tools::views {
namespace {

std::size_t page_of(Size size) { return size.rows > 2 ? size.rows - 2 : 1; }

}  // namespace

bool move_by(Key key, std::size_t count, std::size_t page, std::size_t& position) {
  const std::size_t last = count != 0 ? count - 1 : 0;
  const auto forward = [&](std::size_t by) { position = std::min(last, position + by); };
  const auto back = [&](std::size_t by) { position -= std::min(position, by); };
  switch (key) {
    case Key::up:
      back(1);
      return true;
    case Key::down:
      forward(1);
      return true;
    case Key::page_up:
      back(page);
      return true;
    case Key::page_down:
      forward(page);
      return true;
    case Key::home:
      position = 0;
      return true;
    case Key::end:
      position = last;
      return true;
    default:
      return false;
  }
}

std::size_t scrolled_to(std::size_t position, std::size_t page, std::size_t first) {
  if (position < first) return position;
  return position >= first + page ? position - page + 1 : first;
}

Chooser::Answer Chooser::key(Key key, Size size) {
  if (move_by(key, lines_.size(), page_of(size), chosen_)) return Answer::choosing;
  if (key == Key::enter) return lines_.empty() ? Answer::cancelled : Answer::chosen;
  const bool cancels = key == Key::escape || character(key) == U'q' || character(key) == U'?';
  return cancels ? Answer::cancelled : Answer::choosing;
}

Picture Chooser::picture(Size size) {
  const std::size_t page = page_of(size);
  first_ = scrolled_to(chosen_, page, first_);
  Picture picture{Line::bar(" " + title_)};
  for (std::size_t i = first_; i < std::min(lines_.size(), first_ + page); ++i) {
    picture.push_back(lines_[i]);
    picture.back().reversed = i == chosen_;
  }
  picture.resize(size.rows - 1);
  picture.push_back(Line::bar(" ↑↓ move   Enter choose   Esc back"));
  return picture;
}

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

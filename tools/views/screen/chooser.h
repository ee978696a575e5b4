// A list to choose from, or a page to read: a title, lines and a cursor.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tools/views/screen/picture.h"
#include "tools/views/screen/screen.h"

namespace oomrec::tools::views {

// Moves `position` in a list of `count` rows: arrows, Page Up and Down, Home, End. False: another
// key.
bool move_by(Key key, std::size_t count, std::size_t page, std::size_t& position);

// The first row to show, so that `position` is among the `page` rows on the screen. `first`: the
// previous one.
std::size_t scrolled_to(std::size_t position, std::size_t page, std::size_t first);

class Chooser {
 public:
  Chooser(std::string title, std::vector<Line> lines, std::size_t chosen = 0)
      : title_(std::move(title)), lines_(std::move(lines)), chosen_(chosen) {}

  enum class Answer : std::uint8_t { choosing, chosen, cancelled };
  Answer key(Key key, Size size);
  std::size_t chosen() const { return chosen_; }

  Picture picture(Size size);

 private:
  std::string title_;
  std::vector<Line> lines_;
  std::size_t chosen_ = 0, first_ = 0;
};

// A line of text that the user types, and the search for it.
class Prompt {
 public:
  enum class Answer : std::uint8_t { editing, accepted, cancelled };
  Answer key(Key key);
  const std::string& text() const { return text_; }  // UTF-8

 private:
  std::string text_;
};

std::string in_utf8(char32_t code);

// Whether `text` contains `part`. ASCII letters match in either case.
bool contains_ignoring_case(std::string_view text, std::string_view part);

}  // namespace oomrec::tools::views

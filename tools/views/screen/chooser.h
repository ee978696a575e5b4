// A list to choose from, or a page to read: a title, lines, and one that is chosen.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/views/screen/picture.h"
#include "tools/views/screen/screen.h"

namespace oomrec::tools::views {

// Moves a position among `count` by a key: arrows, pages of `page`, Home and End. False: the key is
// none of those.
bool move_by(Key key, std::size_t count, std::size_t page, std::size_t& position);

// The first row that is shown, so that the position is among `page` of them.
std::size_t scrolled_to(std::size_t position, std::size_t page, std::size_t first);

class Chooser {
 public:
  Chooser(std::string title, std::vector<Line> lines, std::size_t chosen = 0)
      : title_(std::move(title)), lines_(std::move(lines)), chosen_(chosen) {}

  enum class Answer : std::uint8_t { open, chosen, left };
  Answer key(Key key, Size size);
  std::size_t chosen() const { return chosen_; }

  Picture picture(Size size);

 private:
  std::string title_;
  std::vector<Line> lines_;
  std::size_t chosen_ = 0, first_ = 0;
};

}  // namespace oomrec::tools::views

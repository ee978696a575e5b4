// A drawing in a few lines of text. In Unicode a character is 2 × 4 dots (braille), in ASCII one
// column of 2.
#pragma once

#include <cstdint>
#include <vector>

#include "tools/views/screen/picture.h"

namespace oomrec::tools::views {

class Canvas {
 public:
  Canvas(std::size_t columns, std::size_t rows, bool utf8);

  std::size_t dots_wide() const { return columns_ * dots_.columns; }
  std::size_t dots_high() const { return rows_ * dots_.rows; }
  std::size_t dots_a_column() const { return dots_.columns; }

  // From the left, from the bottom. A character has the colour of the last dot in it.
  void dot(std::size_t x, std::size_t y, Colour);
  // Dots from one height to another, both included.
  void stroke(std::size_t x, std::size_t from, std::size_t to, Colour);
  // A text in place of dots, from a character on: row 0 is the topmost.
  void text(std::size_t column, std::size_t row, std::string_view, Colour);

  std::vector<Line> lines() const;

 private:
  struct Cell {
    std::uint8_t dots = 0;
    std::string text;  // instead
    Colour colour = Colour::plain;
  };

  std::size_t columns_, rows_;
  bool utf8_;
  Size dots_;  // of a character
  std::vector<Cell> cells_;
};

}  // namespace oomrec::tools::views

// A drawing in lines of text. A character is 2 × 4 dots in Unicode (braille), 1 × 2 dots in ASCII.
#pragma once

#include <cstdint>
#include <vector>

#include "tools/views/screen/picture.h"

namespace oomrec::tools::views {

class Canvas {
 public:
  Canvas(std::size_t columns, std::size_t rows, Charset charset);

  std::size_t dots_wide() const { return columns_ * dots_.columns; }
  std::size_t dots_high() const { return rows_ * dots_.rows; }
  std::size_t dots_per_column() const { return dots_.columns; }

  // `x` counts from the left, `y` from the bottom. A character gets the colour of its last dot.
  void dot(std::size_t x, std::size_t y, Colour);
  // A vertical line, both ends included.
  void stroke(std::size_t x, std::size_t from, std::size_t to, Colour);
  // Text instead of dots, from a character on. Row 0 is the topmost.
  void text(std::size_t column, std::size_t row, std::string_view, Colour);

  std::vector<Line> lines() const;

 private:
  struct Cell {
    std::uint8_t dots = 0;
    std::string text;  // shown instead of dots
    Colour colour = Colour::plain;
  };

  std::size_t columns_, rows_;
  Charset charset_;
  Size dots_;  // per character
  std::vector<Cell> cells_;
};

}  // namespace oomrec::tools::views

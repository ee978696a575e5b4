// Curves over time in lines of text: byte axis on the left, limits as horizontal lines, events
// below.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tools/views/screen/picture.h"

namespace oomrec::tools::views {

// A curve is constant between its points. Curves differ in colour and stroke; a dotted one has
// every other dot.
struct Curve {
  std::string name;
  Colour colour = Colour::plain;
  bool dotted = false;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> points;  // time, bytes; in order of time
};

struct ChartLimit {
  std::string name;
  std::uint64_t bytes = 0;
};

// An event, marked below the curves.
struct ChartEvent {
  std::uint64_t time_ns = 0;
  std::string_view sign;  // a single character
  Colour colour = Colour::plain;
};

struct Chart {
  std::uint64_t begin_ns = 0, end_ns = 0;
  std::vector<Curve> curves;
  std::vector<ChartLimit> limits;  // drawn if the curves come near
  std::vector<ChartEvent> events;

  std::uint64_t highest() const;  // of the curves
};

// The drawing in as many rows as the size has, a line of events if there are any, and the time
// axis. A smaller size is raised to 40 columns and 3 rows.
std::vector<Line> lines_of(const Chart&, Size, Charset charset);

// "── live 412.0 MiB   ·· RSS 500.1 MiB   ┄┄ --limit 8.0 GiB": names with their last values.
Line legend_of(const Chart&);

// "0:07", "1:02:03".
std::string clock_text(std::uint64_t ns);

// A label on a time axis: "0.35 s" if the axis is shorter than 10 s, else as clock_text().
std::string axis_text(std::uint64_t ns, std::uint64_t range_ns);

// A drawing in lines of text. A character is 2 × 4 dots in Unicode (braille), 1 × 2 dots in ASCII.
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

#include "tools/views/plot/canvas.h"

#include <algorithm>
#include <array>

namespace oomrec::tools::views {
namespace {

// Bits of U+2800 + bits, by column and by row from the bottom.
constexpr std::uint8_t kBraille[2][4] = {{0x40, 0x04, 0x02, 0x01}, {0x80, 0x20, 0x10, 0x08}};
constexpr std::array<std::string_view, 4> kAscii = {" ", ".", "'", ":"};

std::string braille(std::uint8_t dots) {
  if (dots == 0) return " ";
  return {'\xe2', static_cast<char>(0xa0 | dots >> 6), static_cast<char>(0x80 | (dots & 0x3f))};
}

}  // namespace

Canvas::Canvas(std::size_t columns, std::size_t rows, Charset charset)
    : columns_(columns),
      rows_(rows),
      charset_(charset),
      dots_(charset == Charset::utf8 ? Size{2, 4} : Size{1, 2}),
      cells_(columns * rows) {}

void Canvas::dot(std::size_t x, std::size_t y, Colour colour) {
  if (x >= dots_wide() || y >= dots_high()) return;
  const std::size_t row = rows_ - 1 - y / dots_.rows;
  Cell& cell = cells_[row * columns_ + x / dots_.columns];
  const std::size_t within = y % dots_.rows;
  const unsigned bit =
      charset_ == Charset::utf8 ? kBraille[x % dots_.columns][within] : 1U << within;
  cell.dots = static_cast<std::uint8_t>(cell.dots | bit);
  cell.colour = colour;
}

void Canvas::stroke(std::size_t x, std::size_t from, std::size_t to, Colour colour) {
  for (std::size_t y = std::min(from, to); y <= std::max(from, to); ++y) dot(x, y, colour);
}

void Canvas::text(std::size_t column, std::size_t row, std::string_view text, Colour colour) {
  for (std::size_t at = 0; at < text.size() && column < columns_ && row < rows_; ++column) {
    std::size_t length = 1;
    while (at + length < text.size() && (text[at + length] & 0xc0) == 0x80) ++length;
    cells_[row * columns_ + column] = {0, std::string{text.substr(at, length)}, colour};
    at += length;
  }
}

std::vector<Line> Canvas::lines() const {
  std::vector<Line> lines(rows_);
  for (std::size_t at = 0; at < cells_.size(); ++at) {
    const Cell& cell = cells_[at];
    const std::string shown = !cell.text.empty()          ? cell.text
                              : charset_ == Charset::utf8 ? braille(cell.dots)
                                                          : std::string{kAscii[cell.dots]};
    std::vector<Span>& spans = lines[at / columns_].spans;
    if (!spans.empty() && spans.back().colour == cell.colour)
      spans.back().text += shown;
    else
      spans.push_back({shown, cell.colour});
  }
  return lines;
}

}  // namespace oomrec::tools::views

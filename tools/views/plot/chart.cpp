#include "tools/views/plot/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "tools/base/text.h"
#include "tools/views/screen/picture.h"

namespace oomrec::tools::views {
namespace {

constexpr std::size_t kAxisColumns = 12;  // "  1023.9 MiB" and the bar

class Drawing {
 public:
  Drawing(const Chart& chart, Size size, Charset charset)
      : chart_(chart), rows_(size.rows), canvas_(size.columns - kAxisColumns, size.rows, charset) {
    const std::uint64_t highest = std::max<std::uint64_t>(1, chart.highest());
    top_ = static_cast<double>(highest) * 1.05;
    // A distant limit would flatten the curves: only the legend shows it.
    for (const ChartLimit& limit : chart.limits)
      if (is_near(limit)) top_ = std::max(top_, static_cast<double>(limit.bytes) * 1.05);
  }

  std::vector<Line> lines() {
    for (const ChartLimit& limit : chart_.limits)
      if (is_near(limit)) draw(limit);
    for (const Curve& curve : chart_.curves) draw(curve);
    std::vector<Line> lines;
    std::size_t row = 0;
    for (Line& drawn : canvas_.lines()) {
      lines.emplace_back(label(row++), Colour::dim);
      lines.back().spans.insert(lines.back().spans.end(), drawn.spans.begin(), drawn.spans.end());
    }
    return lines;
  }

  Line events() const {
    std::vector<Span> cells(columns(), Span{" "});
    for (const ChartEvent& event : chart_.events) {
      const std::size_t column = dot_of(event.time_ns) / canvas_.dots_per_column();
      cells[std::min(column, cells.size() - 1)] = {std::string{event.sign}, event.colour};
    }
    Line line{std::string(kAxisColumns, ' ')};
    line.spans.insert(line.spans.end(), cells.begin(), cells.end());
    return line;
  }

  std::size_t columns() const { return canvas_.dots_wide() / canvas_.dots_per_column(); }

 private:
  bool is_near(const ChartLimit& limit) const {
    return limit.bytes != 0 && limit.bytes / 4 <= chart_.highest();
  }

  // The bytes at the middle of a row. If there are many rows, every other one has no label.
  std::string label(std::size_t row) const {
    const bool labelled = rows_ < 5 || row % 2 == 0 || row + 1 == rows_;
    const bool crowded = rows_ >= 5 && row + 2 == rows_;
    if (!labelled || crowded) return std::string(kAxisColumns - 1, ' ') + "│";
    const double share = (static_cast<double>(rows_ - row) - 0.5) / static_cast<double>(rows_);
    const auto bytes = static_cast<std::uint64_t>(row + 1 == rows_ ? 0 : share * top_);
    return fmt::format("{:>{}} ┤", size_text(bytes), kAxisColumns - 2);
  }

  std::size_t height_of(std::uint64_t bytes) const {
    const double share = static_cast<double>(bytes) / top_;
    const auto most = static_cast<double>(canvas_.dots_high() - 1);
    return static_cast<std::size_t>(std::lround(std::clamp(share, 0.0, 1.0) * most));
  }

  // The column of dots for a time.
  std::size_t dot_of(std::uint64_t time_ns) const {
    if (time_ns <= chart_.begin_ns || chart_.end_ns <= chart_.begin_ns) return 0;
    const double share = static_cast<double>(time_ns - chart_.begin_ns) /
                         static_cast<double>(chart_.end_ns - chart_.begin_ns);
    const auto most = static_cast<double>(canvas_.dots_wide() - 1);
    return static_cast<std::size_t>(std::lround(std::min(share, 1.0) * most));
  }

  void draw(const ChartLimit& limit) {
    const std::size_t y = height_of(limit.bytes);
    for (std::size_t x = 0; x < canvas_.dots_wide(); ++x)
      if (x / 4 % 2 == 0) canvas_.dot(x, y, Colour::red);
    canvas_.text(1, canvas_row(y), cut(fmt::format("{} ", limit.name), columns() - 1), Colour::red);
  }

  std::size_t canvas_row(std::size_t y) const {
    return rows_ - 1 - y * rows_ / canvas_.dots_high();
  }

  // Joins the lowest and the highest of the points that share a column of dots: no peak is lost.
  void draw(const Curve& curve) {
    std::size_t at = 0;
    const auto& points = curve.points;
    for (std::size_t x = 0; x < canvas_.dots_wide(); ++x) {
      if (at == 0 && (points.empty() || dot_of(points[0].first) > x)) continue;  // before the curve
      std::uint64_t low = at != 0 ? points[at - 1].second : points[0].second;
      std::uint64_t high = low;
      for (; at < points.size() && dot_of(points[at].first) <= x; ++at) {
        low = std::min(low, points[at].second);
        high = std::max(high, points[at].second);
      }
      if (curve.dotted && x % 2 != 0) continue;
      canvas_.stroke(x, height_of(low), height_of(high), curve.colour);
    }
  }

  const Chart& chart_;
  const std::size_t rows_;
  Canvas canvas_;
  double top_ = 1;  // bytes
};

Line axis_of_time(const Chart& chart, std::size_t columns) {
  const std::uint64_t range_ns = chart.end_ns - chart.begin_ns;
  const std::string last = axis_text(range_ns, range_ns);
  const std::string middle = axis_text(range_ns / 2, range_ns);
  Line line{std::string(kAxisColumns, ' ') + axis_text(0, range_ns), Colour::dim};
  if (columns > 30) {
    line.blanks_to(kAxisColumns + columns / 2 - middle.size() / 2).add(middle, Colour::dim);
  }
  return line.blanks_to(kAxisColumns + columns - last.size()).add(last, Colour::dim);
}

}  // namespace

std::uint64_t Chart::highest() const {
  std::uint64_t most = 0;
  for (const Curve& curve : curves)
    for (const auto& [time, bytes] : curve.points) most = std::max(most, bytes);
  return most;
}

std::vector<Line> lines_of(const Chart& chart, Size size, Charset charset) {
  size.columns = std::max<std::size_t>(size.columns, 40);
  size.rows = std::max<std::size_t>(size.rows, 3);
  Drawing drawing{chart, size, charset};
  std::vector<Line> lines = drawing.lines();
  if (!chart.events.empty()) lines.push_back(drawing.events());
  lines.push_back(axis_of_time(chart, drawing.columns()));
  return lines;
}

Line legend_of(const Chart& chart) {
  Line line{std::string(kAxisColumns, ' ')};
  for (const Curve& curve : chart.curves) {
    const std::uint64_t now = curve.points.empty() ? 0 : curve.points.back().second;
    line.add(curve.dotted ? "··" : "──", curve.colour)
        .add(fmt::format(" {} {}   ", curve.name, size_text(now)));
  }
  for (const ChartLimit& limit : chart.limits)
    line.add("┄┄", Colour::red).add(fmt::format(" {} {}   ", limit.name, size_text(limit.bytes)));
  return line;
}

std::string axis_text(std::uint64_t ns, std::uint64_t range_ns) {
  constexpr std::uint64_t kShort = 10'000'000'000;
  return range_ns < kShort ? fmt::format("{:.2f} s", static_cast<double>(ns) / 1e9)
                           : clock_text(ns);
}

std::string clock_text(std::uint64_t ns) {
  const std::uint64_t seconds = ns / 1'000'000'000;
  if (seconds < 3600) return fmt::format("{}:{:02}", seconds / 60, seconds % 60);
  return fmt::format("{}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
}

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

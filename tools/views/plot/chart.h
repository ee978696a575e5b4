// Curves over time in lines of text: an axis of bytes at the left, limits across, events below.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tools/views/screen/picture.h"

namespace oomrec::tools::views {

// A curve keeps its height from one point to the next. Told apart by its colour and its stroke:
// one that is `dotted` has every other dot.
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

// Something that happened, marked below the curves where it did.
struct ChartEvent {
  std::uint64_t time_ns = 0;
  std::string_view sign;  // a single character
  Colour colour = Colour::plain;
};

struct Chart {
  std::uint64_t begin_ns = 0, end_ns = 0;
  std::vector<Curve> curves;
  std::vector<ChartLimit> limits;  // those that the curves come near are drawn
  std::vector<ChartEvent> events;

  std::uint64_t highest() const;  // of the curves
};

// `rows` lines of drawing, then one of events if there are any, then the axis of time. At least 40
// columns and 3 rows.
std::vector<Line> lines_of(const Chart&, Size, bool utf8);

// "─ live 412.0 MiB   ┈ RSS 500.1 MiB   limit 8.0 GiB (--limit)": names with their last values.
Line legend_of(const Chart&);

// "0:07", "1:02:03": time since the beginning.
std::string clock_text(std::uint64_t ns);

// A time on an axis of that length: "0.35 s" on a short one.
std::string axis_text(std::uint64_t ns, std::uint64_t range_ns);

}  // namespace oomrec::tools::views

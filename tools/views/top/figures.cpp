#include "tools/views/top/figures.h"

#include <fmt/format.h>

#include <cmath>

#include "common/text/text.h"
#include "tools/base/text.h"
#include "tools/recording/stack_text/stack_text.h"
#include "tools/recording/symbolize/function_name.h"

namespace oomrec::tools::views {
namespace {

// clang-format off
constexpr auto kFigures = std::to_array<Figure>({
    {SortBy::own, 11, 0, "own_bytes",
     [](const Row& row) { return static_cast<double>(row.weight); },
     [](const Row& row) { return Span{size_text(row.weight), Colour::yellow}; },
     [](const Row& row) { return Json(row.own); }},
    {SortBy::total, 11, 55, "total_bytes",
     [](const Row& row) { return static_cast<double>(row.total); },
     [](const Row& row) { return Span{size_text(row.total)}; },
     [](const Row& row) { return Json(row.total); }},
    {SortBy::count, 12, 80, "count",
     [](const Row& row) { return static_cast<double>(row.count); },
     [](const Row& row) { return Span{count_text(row.count), Colour::dim}; },
     [](const Row& row) { return Json(row.count); }},
    {SortBy::growth, 13, 70, "growth_bytes_per_s",
     [](const Row& row) { return row.growth; },
     [](const Row& row) { return Span{growth_text(row.growth), row.growth > 0 ? Colour::red : Colour::green}; },
     [](const Row& row) { return Json(std::llround(row.growth)); }},
});
// clang-format on

static_assert(
    [] {
      for (std::size_t i = 0; i < kFigures.size(); ++i)
        if (kFigures[i].sort != static_cast<SortBy>(i)) return false;
      return kFigures.size() == std::size(kSortNames);
    }(),
    "one row for each SortBy, in its order");

}  // namespace

std::span<const Figure> figures() { return kFigures; }

namespace {

constexpr std::size_t kMostCallers = 4;
constexpr std::size_t kWidestFunction = 48;

// Shorter than location_text(), to fit a row. Enter shows the rest.
std::string short_text(const recording::Location& location, const recording::Locations& locations) {
  if (location.is_line() && !location.function.empty())
    return printable(
        fmt::format("{}:{} {}", text::base_name(location.file), location.line, location.function));
  if (location.kind == recording::Location::Kind::native && !location.function.empty())
    return recording::shortened_name(printable(location.function), kWidestFunction);
  return recording::location_text(location, locations);
}

// The stack's subject and its relevant callers.
std::string stack_row_text(PathId path, const Table& table) {
  const Paths& paths = table.paths();
  const recording::Locations& locations = table.names().locations();
  if (path == 0) return "[no stack was recorded]";
  const recording::LocationId subject = paths[path].subject;
  std::string text = short_text(locations[subject], locations);
  PathId at = path;
  while (at != 0 && paths[at].location != subject) at = paths[at].parent;
  const recording::Relevance least = std::min(
      recording::relevance_of(locations[subject], locations), recording::Relevance::python_line);
  std::size_t callers = 0;
  for (at = paths[at].parent; at != 0 && callers < kMostCallers; at = paths[at].parent) {
    const recording::Location& location = locations[paths[at].location];
    if (location.interpreter || recording::relevance_of(location, locations) < least) continue;
    text += " ← " + short_text(location, locations);
    ++callers;
  }
  return text;
}

// A function, with its file but without a line number.
std::string function_row_text(const recording::Location& location,
                              const recording::Locations& locations) {
  if (location.kind == recording::Location::Kind::note) return printable(location.function);
  const std::string module{text::base_name(locations.module_path(location))};
  const std::string_view file = location.file.empty() ? std::string_view{module} : location.file;
  if (location.function.empty())
    return fmt::format("[functions without a name]  {}", printable(text::base_name(file)));
  const std::string function =
      recording::shortened_name(printable(location.function), kWidestFunction);
  return fmt::format("{}  {}", function, printable(text::base_name(file)));
}

}  // namespace

std::string row_text(const Row& row, By by, const Table& table) {
  const Names& names = table.names();
  if (by == By::stack) return stack_row_text(row.key, table);
  if (row.key == 0) return "[no stack was recorded]";
  if (by == By::function)
    return function_row_text(names.locations()[names.location_of_function(row.key)],
                             names.locations());
  const std::string& file = names.file(row.key);
  return file.empty() ? "[unknown files]" : printable(file);
}

std::string growth_text(double bytes_a_second) {
  const double size = std::abs(bytes_a_second);
  if (size < 1) return {};
  return fmt::format("{}{}/s", bytes_a_second < 0 ? '-' : '+',
                     size_text(static_cast<std::uint64_t>(size)));
}

}  // namespace oomrec::tools::views

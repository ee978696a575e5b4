#include "tools/views/top/row_text.h"

#include <fmt/format.h>

#include <cmath>

#include "common/text/text.h"
#include "tools/base/text.h"
#include "tools/recording/stack_text/stack_text.h"

namespace oomrec::tools::views {
namespace {

constexpr std::size_t kMostCallers = 4;

using text::base_name;

// Shorter than place_text(): a row has room for a name, and Enter shows the rest.
std::string short_text(const recording::Place& place, const recording::Places& places) {
  if (place.kind == recording::Place::Kind::python && !place.function.empty())
    return printable(
        fmt::format("{}:{} {}", text::base_name(place.file), place.line, place.function));
  if (place.kind == recording::Place::Kind::native && !place.function.empty())
    return printable(place.function);
  return recording::place_text(place, places);
}

// A stack by what it is known by, and by those callers that tell something.
std::string stack_row_text(PathId path, const Table& table) {
  const Paths& paths = table.paths();
  const recording::Places& places = table.names().places();
  if (path == 0) return "[no stack was recorded]";
  const recording::PlaceId subject = paths[path].subject;
  std::string text = short_text(places[subject], places);
  PathId at = path;
  while (at != 0 && paths[at].place != subject) at = paths[at].parent;
  const recording::Telling least =
      std::min(recording::telling_of(places[subject], places), recording::Telling::python_line);
  std::size_t callers = 0;
  for (at = paths[at].parent; at != 0 && callers < kMostCallers; at = paths[at].parent) {
    const recording::Place& place = places[paths[at].place];
    if (place.interpreter || recording::telling_of(place, places) < least) continue;
    text += " ← " + short_text(place, places);
    ++callers;
  }
  return text;
}

// Its lines are one: the file without a number.
std::string function_row_text(const recording::Place& place, const recording::Places& places) {
  if (place.kind == recording::Place::Kind::note) return printable(place.function);
  const std::string module{text::base_name(places.module_path(place))};
  const std::string_view file = place.file.empty() ? std::string_view{module} : place.file;
  if (place.function.empty())
    return fmt::format("[functions without a name]  {}", printable(text::base_name(file)));
  return printable(fmt::format("{}  {}", place.function, text::base_name(file)));
}

}  // namespace

std::string row_text(const Row& row, By by, const Table& table) {
  const Names& names = table.names();
  if (by == By::stack) return stack_row_text(row.key, table);
  if (row.key == 0) return "[no stack was recorded]";
  if (by == By::function)
    return function_row_text(names.places()[names.place_of_function(row.key)], names.places());
  const std::string& file = names.file(row.key);
  return file.empty() ? "[files that are not known]" : printable(file);
}

std::string growth_text(double bytes_a_second) {
  const double size = std::abs(bytes_a_second);
  if (size < 1) return {};
  return fmt::format("{}{}/s", bytes_a_second < 0 ? '-' : '+',
                     size_text(static_cast<std::uint64_t>(size)));
}

}  // namespace oomrec::tools::views

#include "tools/recording/stack_text/stack_text.h"

#include <fmt/format.h>

#include "common/text/text.h"
#include "tools/base/text.h"
#include "tools/recording/stack_text/frame_selection.h"

namespace oomrec::tools::recording {
namespace {

constexpr std::size_t kMostLines = 14;  // of one stack, unless all are asked for
constexpr std::size_t kWidestPath = 46;

using text::base_name;

// Of an installed package what its name begins with; the end of a path that is too long.
std::string short_path(std::string_view path) {
  for (const std::string_view folder : {"/site-packages/", "/dist-packages/"}) {
    const auto at = path.find(folder);
    if (at != std::string_view::npos) path.remove_prefix(at + folder.size());
  }
  return clip_start(printable(path), kWidestPath);
}

bool is_own(Interest interest) {
  return interest == Interest::own_line || interest == Interest::own_function;
}

Colour colour_of(Interest interest) {
  switch (interest) {
    case Interest::own_line:
    case Interest::own_function:
      return Colour::cyan;
    case Interest::library_line:
    case Interest::library_function:
      return Colour::plain;
    case Interest::machinery:
      return Colour::dim;
  }
  return Colour::plain;
}

std::vector<StackRow> rows_of(const std::vector<PlaceId>& stack, const Places& places, bool full) {
  const std::vector<Interest> interest = interests(stack, places);
  if (!full) return folded(stack, interest);
  std::vector<StackRow> rows;
  for (std::size_t i = 0; i < stack.size(); ++i) rows.push_back({i, i + 1, interest[i]});
  return rows;
}

std::string row_text(const StackRow& row, const std::vector<PlaceId>& stack, const Places& places) {
  if (row.cycle > 1) return fmt::format("… these {} frames × {}", row.cycle, count_text(row.times));
  const std::string text = place_text(places[stack[row.first]], places);
  return row.times > 1 ? fmt::format("{}  × {}", text, count_text(row.times)) : text;
}

}  // namespace

std::string place_text(const Place& place, const Places& places) {
  std::string function = printable(place.function);
  if (place.kind == Place::Kind::note) return function;
  if (place.kind == Place::Kind::python) {
    if (place.file.empty() && function.empty()) return "unknown Python function";
    return fmt::format("{}:{} {}", place.file.empty() ? "?" : short_path(place.file), place.line,
                       function.empty() ? "?" : function);
  }
  const std::string module = printable(text::base_name(places.module_path(place)));
  std::string text = function;
  if (function.empty()) {
    text = fmt::format("{}+{:#x}", module.empty() ? "unknown code" : module, place.offset);
  }
  if (!place.file.empty()) {
    text += fmt::format("  {}:{}", short_path(place.file), place.line);
  } else if (!function.empty() && !module.empty()) {
    text += fmt::format("  ({})", module);
  }
  if (place.inlined) text += "  inlined";
  if (place.guessed) text += "  guessed";
  return text;
}

std::string stack_text(const std::vector<PlaceId>& stack, const Places& places,
                       const StackStyle& style) {
  const std::string indent(style.indent, ' ');
  std::string text;
  const auto add = [&](Colour colour, const std::string& line) {
    text += indent + style.terminal.paint(colour, clip(line, kColumns - style.indent)) + "\n";
  };
  bool has_source = false;
  const auto add_source = [&](const StackRow& row) {
    if (style.lines == nullptr || row.cycle > 1) return;
    if (!style.full && (has_source || !is_own(row.interest))) return;
    const std::string source = style.lines->of(places[stack[row.first]]);
    has_source = has_source || !source.empty();
    if (!source.empty()) add(Colour::dim, "    " + source);
  };
  const std::vector<StackRow> rows = rows_of(stack, places, style.full);
  const std::vector<bool> shown =
      style.full ? std::vector<bool>(rows.size(), true) : worth_a_line(rows, kMostLines);
  for (std::size_t at = 0; at < rows.size();) {
    if (shown[at]) {
      add(colour_of(rows[at].interest), row_text(rows[at], stack, places));
      add_source(rows[at]);
      ++at;
      continue;
    }
    const std::size_t first = at;
    while (at < rows.size() && !shown[at]) ++at;
    add(Colour::dim, gap_text(stack, rows[first].first, rows[at - 1].last, places));
  }
  if (stack.empty()) add(Colour::dim, "[no stack was recorded]");
  return text;
}

Json stack_json(const std::vector<PlaceId>& stack, const Places& places) {
  Json frames = Json::array();
  for (const PlaceId id : stack) {
    const Place& place = places[id];
    const bool native = place.kind == Place::Kind::native;
    frames.push_back({
        {"kind", place.kind == Place::Kind::python ? "python" : "native"},
        {"function", text_or_null(place.function)},
        {"file", text_or_null(place.file)},
        {"line", place.line != 0 ? Json(place.line) : Json(nullptr)},
        {"module", text_or_null(places.module_path(place))},
        {"build_id", text_or_null(places.build_id(place))},
        {"offset", native ? Json(place.offset) : Json(nullptr)},
        {"inlined", place.inlined},
        {"guessed", place.guessed},
    });
  }
  return frames;
}

}  // namespace oomrec::tools::recording

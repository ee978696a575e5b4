#include "tools/print/stack.h"

#include <fmt/format.h>

#include "tools/print/shorten.h"
#include "tools/text.h"

namespace oomrec::tools {
namespace {

constexpr std::size_t kMostLines = 14;  // of one stack, unless all are asked for
constexpr std::size_t kWidestPath = 46;

std::string base_name(std::string_view path) {
  return std::string{path.substr(path.rfind('/') + 1)};
}

// Of an installed package what its name begins with; the end of a path that is too long.
std::string short_path(std::string_view path) {
  for (const std::string_view folder : {"/site-packages/", "/dist-packages/"}) {
    const auto at = path.find(folder);
    if (at != std::string_view::npos) path.remove_prefix(at + folder.size());
  }
  return clip_start(printable(path), kWidestPath);
}

}  // namespace

std::string place_text(const Place& place, const Places& places) {
  std::string function = printable(place.function);
  if (place.kind == Place::Kind::note) return function;
  if (place.kind == Place::Kind::python) {
    return fmt::format("{}:{} {}", place.file.empty() ? "?" : short_path(place.file), place.line,
                       function.empty() ? "?" : function);
  }
  const std::string module = printable(base_name(places.module_path(place)));
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
  const std::vector<Interest> interest = interests(stack, places);
  const std::vector<bool> shown =
      style.full ? std::vector<bool>(stack.size(), true) : worth_a_line(interest, kMostLines);
  for (std::size_t at = 0; at < stack.size();) {
    if (shown[at]) {
      const Place& place = places[stack[at]];
      const bool own = interest[at] == Interest::own;
      add(own                                 ? Colour::cyan
          : interest[at] == Interest::library ? Colour::plain
                                              : Colour::dim,
          place_text(place, places));
      ++at;
      continue;
    }
    const std::size_t first = at;
    while (at < stack.size() && !shown[at]) ++at;
    add(Colour::dim, gap_text(stack, first, at, places));
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

}  // namespace oomrec::tools

#include "tools/recording/stack_text/stack_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/text/text.h"
#include "tools/base/text.h"
#include "tools/recording/stack_text/frame_selection.h"
#include "tools/recording/symbolize/function_name.h"

namespace oomrec::tools::recording {
namespace {

constexpr std::size_t kMostLines = 14;  // for one stack, unless all frames are wanted
// How the memory was requested: always shown, and the line of Python if a line below sums this up.
constexpr std::size_t kInnermost = 4, kInnermostOfPython = 1;
constexpr std::size_t kWidestPath = 46;
constexpr std::size_t kNarrowestPath = 16;
// On a terminal of 80 columns the method's name, at the end, must still be visible.
constexpr std::size_t kWidestFunction = 72;
constexpr std::size_t kNarrowestFunction = 40;

// A path relative to site-packages, if it is in there; the end of a path that is still too long.
std::string short_path(std::string_view path, std::size_t columns = kWidestPath) {
  for (const std::string_view folder : {"/site-packages/", "/dist-packages/"}) {
    const auto at = path.find(folder);
    if (at != std::string_view::npos) path.remove_prefix(at + folder.size());
  }
  return clip_start(printable(path), columns);
}

// The file's name of a module, without the interpreter and machine for which it was built: of
// "state.cpython-311-x86_64-linux-gnu.so" it keeps "state.so". What is still too long loses its
// end.
std::string short_module(std::string_view name, std::size_t columns) {
  constexpr std::string_view kSuffix = ".so";
  std::string text = printable(name);
  const std::size_t tag = std::min(text.find(".cpython-"), text.find(".pypy"));
  if (width(text) > columns && text.ends_with(kSuffix) && tag < text.size() - kSuffix.size())
    text.erase(tag, text.size() - kSuffix.size() - tag);
  return clip(text, columns);
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

std::vector<StackRow> rows_of(const std::vector<LocationId>& stack, const Locations& locations,
                              bool full) {
  const std::vector<Interest> interest = interests(stack, locations);
  if (!full) return fold_repetitions(stack, interest);
  std::vector<StackRow> rows;
  for (std::size_t i = 0; i < stack.size(); ++i) rows.push_back({i, i + 1, interest[i]});
  return rows;
}

// What a stack that runs Python does inside of its innermost line of Python, that of its import
// system aside, or native function of the program's own: the range [first, last), else empty. Notes
// before it are no functions.
struct NativePart {
  std::size_t first = 0, last = 0;
  bool empty() const { return first == last; }
};

NativePart native_part_of(const std::vector<LocationId>& stack, const Locations& locations) {
  const bool runs_script =
      std::ranges::any_of(stack, [&](LocationId id) { return locations[id].is_script(); });
  const auto is_line = [&](LocationId id) {
    if (locations[id].script) return true;
    return locations[id].kind == Location::Kind::python
               ? !is_import_machinery(locations[id])
               : runs_script && is_own_function(locations[id], locations);
  };
  const auto is_note = [&](LocationId id) { return locations[id].kind == Location::Kind::note; };
  const auto line = std::ranges::find_if(stack, is_line);
  if (line == stack.end()) return {};
  const auto first = std::find_if_not(stack.begin(), line, is_note);
  if (std::any_of(first, line, is_note)) return {};
  return {static_cast<std::size_t>(first - stack.begin()),
          static_cast<std::size_t>(line - stack.begin())};
}

std::string text_of(const NativePart& part, const std::vector<LocationId>& stack,
                    const Locations& locations, std::size_t columns) {
  const std::size_t widest = columns == kAnyWidth ? kAnyWidth : columns / 3;
  // Of the interpreter's functions only those tell something that have a name, and only if there
  // are no others.
  std::vector<std::string> names, of_interpreter;
  for (std::size_t at = part.first; at < part.last; ++at) {
    const Location& location = locations[stack[at]];
    if (location.is_script()) continue;
    const std::string module{text::base_name(locations.module_path(location))};
    if (!location.function.empty())
      (location.interpreter ? of_interpreter : names)
          .push_back(shortened_name(printable(location.function), widest));
    else if (!location.interpreter)
      names.push_back(module.empty() ? "unknown code" : short_module(module, widest));
  }
  if (names.empty()) names = std::move(of_interpreter);
  if (names.empty()) return "";
  const std::string count = names.size() == 1 ? "" : fmt::format(" ({} functions)", names.size());
  if (names.front() == names.back()) return "in native code: " + names.front() + count;
  return fmt::format("in native code: {} … {}{}", names.back(), names.front(), count);
}

// Whether the rows of the native part can be left out: no repeated cycle reaches into it.
bool is_apart(const NativePart& part, const std::vector<StackRow>& rows) {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].cycle > 1 && rows[i].first >= part.last &&
        rows[i - rows[i].cycle].first < part.last)
      return false;
  }
  return !part.empty();
}

std::string row_text(const StackRow& row, const std::vector<LocationId>& stack,
                     const Locations& locations, std::size_t columns) {
  if (row.cycle > 1) return fmt::format("… these {} frames × {}", row.cycle, count_text(row.times));
  const std::string times = row.times > 1 ? fmt::format("  × {}", count_text(row.times)) : "";
  return location_text(locations[stack[row.first]], locations, columns - width(times)) + times;
}

// A function's name in the columns that `others` leave in its row.
std::string fitted(const std::string& function, std::size_t columns, std::size_t others) {
  if (columns == kAnyWidth) return function;
  const std::size_t left = columns - std::min(columns, others);
  return shortened_name(function, std::clamp(left, kNarrowestFunction, kWidestFunction));
}

}  // namespace

std::string location_text(const Location& location, const Locations& locations,
                          std::size_t columns) {
  std::string function = printable(location.function);
  if (location.kind == Location::Kind::note) return function;
  if (location.is_line()) {
    if (location.file.empty() && function.empty()) return "unknown Python function";
    return fmt::format("{}:{} {}", location.file.empty() ? "?" : short_path(location.file),
                       location.line, function.empty() ? "?" : function);
  }
  const std::string module = printable(text::base_name(locations.module_path(location)));
  const bool is_named = !function.empty();
  if (!is_named) {
    const std::size_t widest = columns == kAnyWidth ? kAnyWidth : kNarrowestFunction;
    function =
        fmt::format("{}+{:#x}", module.empty() ? "unknown code" : short_module(module, widest),
                    location.offset);
  }
  const std::string marks =
      std::string{location.inlined ? "  inlined" : ""} + (location.guessed ? "  guessed" : "");
  if (location.file.empty()) {
    const std::string from = is_named && !module.empty() ? fmt::format("  ({})", module) : "";
    return fitted(function, columns, from.size() + marks.size()) + from + marks;
  }
  const std::string line = fmt::format(":{}{}", location.line, marks);
  std::string path = short_path(location.file);
  function = fitted(function, columns, 2 + width(path) + line.size());
  const std::size_t left = columns - std::min(columns, width(function) + 2 + line.size());
  path = short_path(location.file, std::clamp(left, kNarrowestPath, kWidestPath));
  return fmt::format("{}  {}{}", function, path, line);
}

std::string native_part_text(const std::vector<LocationId>& stack, const Locations& locations,
                             std::size_t columns) {
  return text_of(native_part_of(stack, locations), stack, locations, columns);
}

std::string stack_text(const std::vector<LocationId>& stack, const Locations& locations,
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
    const std::string source = style.lines->of(locations[stack[row.first]]);
    has_source = has_source || !source.empty();
    if (!source.empty()) add(Colour::dim, "    " + source);
  };
  std::vector<StackRow> rows = rows_of(stack, locations, style.full);
  const NativePart native = style.full ? NativePart{} : native_part_of(stack, locations);
  const bool folds_native = is_apart(native, rows);
  if (folds_native) {
    std::erase_if(rows, [&](const StackRow& row) {
      return row.first >= native.first && row.first < native.last;
    });
  }
  const std::string native_text =
      folds_native ? text_of(native, stack, locations, kColumns - style.indent - 4) : "";
  const std::vector<bool> shown =
      style.full ? std::vector<bool>(rows.size(), true)
                 : select_rows(rows, kMostLines, folds_native ? kInnermostOfPython : kInnermost);
  for (std::size_t at = 0; at < rows.size();) {
    if (shown[at]) {
      add(colour_of(rows[at].interest),
          row_text(rows[at], stack, locations, kColumns - style.indent));
      add_source(rows[at]);
      if (folds_native && rows[at].first == native.last && !native_text.empty())
        add(Colour::dim, "    " + native_text);
      ++at;
      continue;
    }
    const std::size_t first = at;
    while (at < rows.size() && !shown[at]) ++at;
    add(Colour::dim, gap_text(stack, rows[first].first, rows[at - 1].last, locations));
  }
  if (stack.empty()) add(Colour::dim, "[no stack was recorded]");
  return text;
}

Json stack_json(const std::vector<LocationId>& stack, const Locations& locations) {
  Json frames = Json::array();
  for (const LocationId id : stack) {
    const Location& location = locations[id];
    const bool native = location.kind == Location::Kind::native;
    frames.push_back({
        {"kind", location.kind == Location::Kind::python ? "python" : "native"},
        {"function", text_or_null(location.function)},
        {"file", text_or_null(location.file)},
        {"line", number_or_null(location.line)},
        {"module", text_or_null(locations.module_path(location))},
        {"build_id", text_or_null(locations.build_id(location))},
        {"offset", native ? Json(location.offset) : Json(nullptr)},
        {"inlined", location.inlined},
        {"guessed", location.guessed},
    });
  }
  return frames;
}

}  // namespace oomrec::tools::recording

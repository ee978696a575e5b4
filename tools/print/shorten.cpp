#include "tools/print/shorten.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "recorder/bundle/frames.h"
#include "recorder/bundle/own_code.h"
#include "tools/text.h"

namespace oomrec::tools {
namespace {

constexpr std::size_t kInnermost = 4;  // how the memory was asked for: always shown

bool is_python(const Place& place) { return place.kind == Place::Kind::python; }

bool has(std::string_view text, std::string_view word) {
  return text.find(word) != std::string_view::npos;
}

// The import system, and what else was compiled into the interpreter.
bool is_frozen(const Place& place) { return is_python(place) && place.file.starts_with("<frozen"); }

// What calls main or a thread's first function.
bool is_start(const Place& place) {
  constexpr std::array<std::string_view, 6> kStarts = {"_start",
                                                       "__libc_start_call_main",
                                                       "__libc_start_main_impl",
                                                       "__libc_start_main",
                                                       "start_thread",
                                                       "clone3"};
  return std::find(kStarts.begin(), kStarts.end(), place.function) != kStarts.end();
}

bool is_installed(std::string_view module_path) {
  return has(module_path, "site-packages/") || has(module_path, "dist-packages/") ||
         module_path.starts_with("/usr/lib") || module_path.starts_with("/lib");
}

Interest interest_of(const Place& place, const Places& places, bool below_python) {
  if (place.kind == Place::Kind::note) return Interest::own;
  if (is_python(place)) {
    if (is_frozen(place)) return Interest::machinery;
    return bundle::is_programs_own(place.file) ? Interest::own : Interest::library;
  }
  const std::string module = places.module_path(place);
  // Between the request and the first Python line the interpreter's functions tell how it was asked
  // for; further out they only lead from line to line.
  if (place.interpreter)
    return below_python && !place.function.empty() ? Interest::library : Interest::machinery;
  if (is_start(place) || bundle::is_plumbing(module) || module.empty()) return Interest::machinery;
  if (is_installed(module)) return place.function.empty() ? Interest::machinery : Interest::library;
  return Interest::own;
}

std::size_t lines_of(const std::vector<bool>& shown) {
  std::size_t lines = 0;
  for (std::size_t i = 0; i < shown.size(); ++i) {
    const bool gap_begins = !shown[i] && (i == 0 || shown[i - 1]);
    if (shown[i] || gap_begins) ++lines;
  }
  return lines;
}

}  // namespace

std::vector<Interest> interests(const std::vector<PlaceId>& stack, const Places& places) {
  const auto python =
      std::find_if(stack.begin(), stack.end(), [&](PlaceId id) { return is_python(places[id]); });
  std::vector<Interest> result;
  for (auto at = stack.begin(); at != stack.end(); ++at)
    result.push_back(interest_of(places[*at], places, at < python));
  return result;
}

std::vector<bool> worth_a_line(const std::vector<Interest>& stack, std::size_t most_lines) {
  std::vector<bool> shown(stack.size());
  std::fill_n(shown.begin(), std::min(kInnermost, stack.size()), true);
  for (const Interest wanted : {Interest::own, Interest::library}) {
    for (std::size_t i = 0; i < stack.size(); ++i) {
      if (shown[i] || stack[i] != wanted) continue;
      shown[i] = true;
      if (lines_of(shown) > most_lines) shown[i] = false;
    }
  }
  // A gap of one frame takes a line as well.
  for (std::size_t i = 0; i < stack.size(); ++i) {
    const bool begins = i == 0 || shown[i - 1];
    const bool ends = i + 1 == stack.size() || shown[i + 1];
    if (begins && ends) shown[i] = true;
  }
  return shown;
}

std::string gap_text(const std::vector<PlaceId>& stack, std::size_t first, std::size_t last,
                     const Places& places) {
  const auto all = [&](auto condition) {
    return std::all_of(stack.begin() + static_cast<std::ptrdiff_t>(first),
                       stack.begin() + static_cast<std::ptrdiff_t>(last),
                       [&](PlaceId id) { return condition(places[id]); });
  };
  const auto of_interpreter = [&](const Place& place) {
    return place.interpreter || is_frozen(place) || is_start(place);
  };
  const auto of_system = [&](const Place& place) {
    return is_start(place) || bundle::is_plumbing(places.module_path(place));
  };
  const char* whose = all(of_system)        ? " of the C library"
                      : all(of_interpreter) ? " of the interpreter"
                                            : "";
  return fmt::format("… {}{}", plural(last - first, "frame", "frames"), whose);
}

}  // namespace oomrec::tools

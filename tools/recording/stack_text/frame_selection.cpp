#include "tools/recording/stack_text/frame_selection.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "common/text/frames.h"
#include "common/text/own_code.h"
#include "tools/base/text.h"

namespace oomrec::tools::recording {
namespace {

constexpr std::size_t kInnermost = 4;     // how the memory was asked for: always shown
constexpr std::size_t kLongestCycle = 8;  // of functions that call each other in turn

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
  if (place.kind == Place::Kind::note) return Interest::own_line;
  if (is_python(place)) {
    if (is_frozen(place)) return Interest::machinery;
    return text::is_programs_own(place.file) ? Interest::own_line : Interest::library_line;
  }
  const std::string module = places.module_path(place);
  // Between the request and the first Python line the interpreter's functions tell how it was asked
  // for; further out they only lead from line to line.
  if (place.interpreter)
    return below_python && !place.function.empty() ? Interest::library_function
                                                   : Interest::machinery;
  if (is_start(place) || text::is_plumbing(module) || module.empty()) return Interest::machinery;
  if (is_installed(module))
    return place.function.empty() ? Interest::machinery : Interest::library_function;
  return Interest::own_function;
}

// How the frames from `at` on repeat: so many, so often.
struct Cycle {
  std::size_t length = 1;
  std::size_t times = 1;

  // Lines that it saves, if only its first round is shown; a cycle of several takes one more, and
  // to save a single one is not worth the mark.
  std::size_t saved() const {
    const std::size_t less = (times - 1) * length;
    if (length == 1) return less;
    return less > 2 ? less - 1 : 0;
  }
};

Cycle cycle_at(const std::vector<PlaceId>& frames, std::size_t at) {
  Cycle best;
  for (std::size_t length = 1; length <= kLongestCycle; ++length) {
    std::size_t end = at + length;
    while (end < frames.size() && frames[end] == frames[end - length]) ++end;
    if (end > frames.size()) break;
    const Cycle cycle{length, (end - at) / length};
    if (cycle.saved() > best.saved()) best = cycle;
  }
  return best;
}

// The order in which the program's own lines get theirs: the innermost three, the outermost two,
// which say what part of the program it was, then the rest outwards.
std::vector<std::size_t> own_lines_by_worth(const std::vector<StackRow>& rows) {
  constexpr std::ptrdiff_t kFirst = 3;
  constexpr std::ptrdiff_t kLast = 2;
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].interest == Interest::own_line) order.push_back(i);
  }
  if (order.size() > static_cast<std::size_t>(kFirst + kLast))
    std::rotate(order.begin() + kFirst, order.end() - kLast, order.end());
  return order;
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

std::vector<StackRow> folded(const std::vector<PlaceId>& stack,
                             const std::vector<Interest>& interests) {
  std::vector<PlaceId> frames;       // without machinery
  std::vector<std::size_t> indices;  // where they are in the stack
  for (std::size_t i = 0; i < stack.size(); ++i) {
    if (interests[i] == Interest::machinery) continue;
    frames.push_back(stack[i]);
    indices.push_back(i);
  }
  std::vector<StackRow> rows;
  const auto add_machinery_to = [&](std::size_t end) {
    for (std::size_t i = rows.empty() ? 0 : rows.back().last; i < end; ++i)
      rows.push_back({i, i + 1, Interest::machinery});
  };
  for (std::size_t at = 0; at < frames.size();) {
    const Cycle cycle = cycle_at(frames, at);
    const std::size_t past = indices[at + cycle.length * cycle.times - 1] + 1;
    Interest most = Interest::machinery;
    for (std::size_t i = at; i < at + cycle.length; ++i) {
      if (i == at)
        add_machinery_to(indices[i]);
      else
        rows.back().last = indices[i];
      rows.push_back({indices[i], indices[i] + 1, interests[indices[i]]});
      most = std::min(most, interests[indices[i]]);
    }
    if (cycle.length == 1) {
      rows.back().last = past;
      rows.back().times = cycle.times;
    } else {
      rows.push_back({rows.back().last, past, most, cycle.length, cycle.times});
    }
    at += cycle.length * cycle.times;
  }
  add_machinery_to(stack.size());
  return rows;
}

std::vector<bool> worth_a_line(const std::vector<StackRow>& rows, std::size_t most_lines) {
  std::vector<bool> shown(rows.size());
  std::fill_n(shown.begin(), std::min(kInnermost, rows.size()), true);
  const auto show_if_there_is_room = [&](std::size_t row) {
    if (shown[row]) return;
    shown[row] = true;
    if (lines_of(shown) > most_lines) shown[row] = false;
  };
  for (const std::size_t row : own_lines_by_worth(rows)) show_if_there_is_room(row);
  for (const Interest wanted :
       {Interest::own_function, Interest::library_line, Interest::library_function}) {
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (rows[i].interest == wanted) show_if_there_is_room(i);
    }
  }
  // The mark of a cycle tells nothing where the cycle is not seen.
  for (std::size_t i = 1; i < rows.size(); ++i) {
    if (rows[i].cycle > 1 && !shown[i - 1]) shown[i] = false;
  }
  // A gap of one frame takes a line as well.
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const bool begins = i == 0 || shown[i - 1];
    const bool ends = i + 1 == rows.size() || shown[i + 1];
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
    return is_start(place) || text::is_plumbing(places.module_path(place));
  };
  const char* whose = all(of_system)        ? " of the C library"
                      : all(of_interpreter) ? " of the interpreter"
                                            : "";
  return fmt::format("… {}{}", plural(last - first, "frame", "frames"), whose);
}

}  // namespace oomrec::tools::recording

#include "tools/recording/stack_text/frame_selection.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "common/names/library_functions.h"
#include "common/text/frames.h"
#include "common/text/own_code.h"
#include "tools/base/text.h"
#include "tools/recording/symbolize/function_name.h"

namespace oomrec::tools::recording {
namespace {

constexpr std::size_t kLongestCycle = 8;  // of functions that call each other in turn

bool is_python(const Location& location) { return location.kind == Location::Kind::python; }

// Modules compiled into the interpreter, such as the import system.
bool is_frozen(const Location& location) {
  return is_python(location) && location.file.starts_with("<frozen");
}

// Code that calls main or a thread's first function.
bool is_start(const Location& location) {
  constexpr std::array<std::string_view, 6> kStarts = {"_start",
                                                       "__libc_start_call_main",
                                                       "__libc_start_main_impl",
                                                       "__libc_start_main",
                                                       "start_thread",
                                                       "clone3"};
  return std::ranges::find(kStarts, location.function) != kStarts.end();
}

Interest interest_of(const Location& location, const Locations& locations, bool below_python) {
  if (location.kind == Location::Kind::note) return Interest::own_line;
  if (is_python(location)) {
    if (is_frozen(location)) return Interest::machinery;
    return text::is_programs_own(location.file) ? Interest::own_line : Interest::library_line;
  }
  if (location.script) {
    if (location.file.empty())
      return text::is_programs_own_method(location.function) ? Interest::own_function
                                                             : Interest::library_function;
    return text::is_programs_own_script(location.file) ? Interest::own_line
                                                       : Interest::library_line;
  }
  const std::string& module = locations.module_path(location);
  // Inside of the innermost Python line, the interpreter's functions show how the memory was
  // requested. Further out they only connect the lines.
  if (location.interpreter)
    return below_python && !location.function.empty() ? Interest::library_function
                                                      : Interest::machinery;
  if (is_start(location) || text::is_plumbing(module) || module.empty()) return Interest::machinery;
  if (text::is_installed(module) || is_library_function(location))
    return location.function.empty() ? Interest::machinery : Interest::library_function;
  return Interest::own_function;
}

// `length` frames that are repeated `times` times.
struct Cycle {
  std::size_t length = 1;
  std::size_t times = 1;

  // The lines saved by showing only the first round. A cycle of several frames needs a line that
  // says so; it must save at least two.
  std::size_t saved_lines() const {
    const std::size_t repeated = (times - 1) * length;
    if (length == 1) return repeated;
    return repeated > 2 ? repeated - 1 : 0;
  }
};

// The cycle that begins at frame `at` and saves most lines.
Cycle cycle_at(const std::vector<LocationId>& frames, std::size_t at) {
  Cycle best;
  for (std::size_t length = 1; length <= kLongestCycle; ++length) {
    std::size_t end = at + length;
    while (end < frames.size() && frames[end] == frames[end - length]) ++end;
    if (end > frames.size()) break;
    const Cycle cycle{length, (end - at) / length};
    if (cycle.saved_lines() > best.saved_lines()) best = cycle;
  }
  return best;
}

// The program's own lines by importance: the innermost three, then the outermost two, which show
// the part of the program, then the rest outwards.
std::vector<std::size_t> own_lines_by_importance(const std::vector<StackRow>& rows) {
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

// Lines that the selected rows take, and one for each gap.
std::size_t line_count(const std::vector<bool>& shown) {
  std::size_t lines = 0;
  for (std::size_t i = 0; i < shown.size(); ++i) {
    const bool gap_begins = !shown[i] && (i == 0 || shown[i - 1]);
    if (shown[i] || gap_begins) ++lines;
  }
  return lines;
}

}  // namespace

std::size_t allocator_frames(const std::vector<LocationId>& stack, const Locations& locations) {
  constexpr std::size_t kMostBetween = 8;
  std::size_t frames = 0;
  for (std::size_t at = 0; at < std::min(stack.size(), frames + kMostBetween); ++at) {
    const Location& location = locations[stack[at]];
    if (is_python(location)) break;
    if (names::is_allocator_function(location.function)) frames = at + 1;
  }
  return frames;
}

Interest interest_alone(const Location& location, const Locations& locations) {
  return interest_of(location, locations, true);
}

std::vector<Interest> interests(const std::vector<LocationId>& stack, const Locations& locations) {
  const auto python =
      std::ranges::find_if(stack, [&](LocationId id) { return is_python(locations[id]); });
  std::vector<Interest> result;
  for (auto at = stack.begin(); at != stack.end(); ++at)
    result.push_back(interest_of(locations[*at], locations, at < python));
  const std::size_t of_allocator = allocator_frames(stack, locations);
  if (of_allocator < stack.size()) std::fill_n(result.begin(), of_allocator, Interest::machinery);
  return result;
}

std::vector<StackRow> fold_repetitions(const std::vector<LocationId>& stack,
                                       const std::vector<Interest>& interests) {
  std::vector<LocationId> frames;    // without machinery
  std::vector<std::size_t> indices;  // their positions in the stack
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

std::vector<bool> select_rows(const std::vector<StackRow>& rows, std::size_t most_lines,
                              std::size_t innermost) {
  std::vector<bool> shown(rows.size());
  std::fill_n(shown.begin(), std::min(innermost, rows.size()), true);
  const auto show_if_it_fits = [&](std::size_t row) {
    if (shown[row]) return;
    shown[row] = true;
    if (line_count(shown) > most_lines) shown[row] = false;
  };
  for (const std::size_t row : own_lines_by_importance(rows)) show_if_it_fits(row);
  for (const Interest wanted :
       {Interest::own_function, Interest::library_line, Interest::library_function}) {
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (rows[i].interest == wanted) show_if_it_fits(i);
    }
  }
  // The line "these frames × n" is meaningless without the cycle above it.
  for (std::size_t i = 1; i < rows.size(); ++i) {
    if (rows[i].cycle > 1 && !shown[i - 1]) shown[i] = false;
  }
  // A gap of one row would take a line, too: show the row instead.
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const bool begins = i == 0 || shown[i - 1];
    const bool ends = i + 1 == rows.size() || shown[i + 1];
    if (begins && ends) shown[i] = true;
  }
  return shown;
}

std::string gap_text(const std::vector<LocationId>& stack, std::size_t first, std::size_t last,
                     const Locations& locations) {
  const auto all = [&](auto condition) {
    return std::all_of(stack.begin() + static_cast<std::ptrdiff_t>(first),
                       stack.begin() + static_cast<std::ptrdiff_t>(last),
                       [&](LocationId id) { return condition(locations[id]); });
  };
  const auto of_interpreter = [&](const Location& location) {
    return location.interpreter || is_frozen(location) || is_start(location);
  };
  const auto of_system = [&](const Location& location) {
    return is_start(location) || text::is_plumbing(locations.module_path(location));
  };
  const char* owner = all(of_system)        ? " of the C library"
                      : all(of_interpreter) ? " of the interpreter"
                                            : "";
  return fmt::format("… {}{}", plural(last - first, "frame", "frames"), owner);
}

}  // namespace oomrec::tools::recording

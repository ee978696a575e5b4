// Selects the frames of a long stack that are shown.
//
// Readers want to see how the memory was requested (the innermost frames) and the program's own
// code, then the frames between them. The interpreter, the import system, the loader and the C
// library's startup code are machinery: counted, not shown. Recursion is shown once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tools/recording/symbolize/locations.h"

namespace oomrec::tools::recording {

// How interesting a frame is, in the order in which frames are selected. The `_line` values are
// Python lines and notes; the `_function` values are native functions.
enum class Interest : std::uint8_t {
  own_line,
  own_function,
  library_line,
  library_function,
  machinery
};

// A candidate for a line: a frame with its repetitions, or the repetition mark after a cycle.
struct StackRow {
  std::size_t first = 0, last = 0;  // the range [first, last) of the stack's locations
  Interest interest = Interest::machinery;
  std::size_t cycle = 1;  // more than 1: a mark; that many rows before it are repeated
  std::size_t times = 1;
};

// The interest of each location of a stack, innermost first.
std::vector<Interest> interests(const std::vector<LocationId>& stack, const Locations& locations);
// That of a location whatever is around it.
Interest interest_alone(const Location& location, const Locations& locations);

// The number of innermost frames that are an allocator's: up to the outermost one of its functions,
// with what lies between them.
std::size_t allocator_frames(const std::vector<LocationId>& stack, const Locations& locations);

// The rows of a stack, with repeated frames and short repeated cycles folded. Machinery between
// repetitions is ignored, and folded with them.
std::vector<StackRow> fold_repetitions(const std::vector<LocationId>& stack,
                                       const std::vector<Interest>& interests);

// True for each row to show. The selected rows, and one line for each gap, fit in `most_lines`. The
// `innermost` ones always are shown.
std::vector<bool> select_rows(const std::vector<StackRow>& rows, std::size_t most_lines,
                              std::size_t innermost);

// "… 8 frames of the interpreter": replaces the locations [first, last).
std::string gap_text(const std::vector<LocationId>& stack, std::size_t first, std::size_t last,
                     const Locations& locations);

}  // namespace oomrec::tools::recording

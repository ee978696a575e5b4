// Which frames of a stack are worth a line, where not all can have one.
//
// What a reader looks for is how the memory was asked for (the innermost frames) and the lines of
// the program's own; then what lies between them. The interpreter, the import system, the loader
// and the C library's start are machinery: they are counted, not shown. Recursion is shown once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tools/recording/symbolize/places.h"

namespace oomrec::tools::recording {

// The order in which frames get a line. A line is one of Python, or a note.
enum class Interest : std::uint8_t {
  own_line,
  own_function,
  library_line,
  library_function,
  machinery
};

// What may become a line: a frame, with its repetitions, or the mark that ends a repeated cycle.
struct StackRow {
  std::size_t first = 0, last = 0;  // the places of the stack that it stands for
  Interest interest = Interest::machinery;
  std::size_t cycle = 1;  // more: the mark that so many rows before it are repeated
  std::size_t times = 1;
};

// Of each place of a stack, innermost first.
std::vector<Interest> interests(const std::vector<PlaceId>& stack, const Places& places);

// The rows of a stack. Frames, and cycles of a few, that follow upon themselves are folded; what
// lies between them of machinery is no difference, and goes with them.
std::vector<StackRow> folded(const std::vector<PlaceId>& stack,
                             const std::vector<Interest>& interests);

// True for those to be shown, so that they and one line for each gap between them are at most
// `most_lines`.
std::vector<bool> worth_a_line(const std::vector<StackRow>& rows, std::size_t most_lines);

// "… 8 frames of the interpreter": what stands for the places [first, last).
std::string gap_text(const std::vector<PlaceId>& stack, std::size_t first, std::size_t last,
                     const Places& places);

}  // namespace oomrec::tools::recording

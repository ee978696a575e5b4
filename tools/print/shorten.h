// Which frames of a stack are worth a line, where not all can have one.
//
// What a reader looks for is how the memory was asked for (the innermost frames) and the lines of
// the program's own; then what lies between them. The interpreter, the import system, the loader
// and the C library's start are machinery: they are counted, not shown.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tools/symbolize/places.h"

namespace oomrec::tools {

enum class Interest : std::uint8_t { own, library, machinery };

// Of each place of a stack, innermost first.
std::vector<Interest> interests(const std::vector<PlaceId>& stack, const Places& places);

// True for those to be shown, so that they and one line for each gap between them are at most
// `most_lines`.
std::vector<bool> worth_a_line(const std::vector<Interest>& stack, std::size_t most_lines);

// "… 8 frames of the interpreter": what stands for the places [first, last).
std::string gap_text(const std::vector<PlaceId>& stack, std::size_t first, std::size_t last,
                     const Places& places);

}  // namespace oomrec::tools

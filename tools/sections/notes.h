// What a reader must know before trusting the figures: what is missing, estimated or dropped.
#pragma once

#include <string>
#include <vector>

#include "tools/base/terminal.h"
#include "tools/bundles/store/source.h"

namespace oomrec::tools::sections {

std::vector<std::string> notes_of(const bundles::Source& source);

// The base of a page's percentages.
std::string shares_note(const recording::Recording&);

// The last section of a page. Prints nothing without notes.
void print_notes(const std::vector<std::string>& notes, const Terminal& terminal);

// Modules with an allocator of their own that hold a notable part of a recording.

// A sentence for each: what it is, how much it holds, and what to set to record its blocks. The
// largest first. Cost: reads the constants of the few modules that made the large mappings.
std::vector<std::string> linked_allocator_notes(const bundles::Source&);

}  // namespace oomrec::tools::sections

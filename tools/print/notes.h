// What a reader must know before trusting the figures: what is missing, estimated or dropped.
#pragma once

#include <string>
#include <vector>

#include "tools/base/terminal.h"
#include "tools/bundles/store/source.h"

namespace oomrec::tools::print {

std::vector<std::string> notes_of(const bundles::Source& source);

// The base of a page's percentages.
std::string shares_note(const recording::Recording&);

// The last section of a page. Prints nothing without notes.
void print_notes(const std::vector<std::string>& notes, const Terminal& terminal);

}  // namespace oomrec::tools::print

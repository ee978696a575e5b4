// What a reader must know before trusting the figures: what was not seen, estimated, dropped.
#pragma once

#include <string>
#include <vector>

#include "tools/base/terminal.h"
#include "tools/bundles/store/source.h"

namespace oomrec::tools::print {

std::vector<std::string> notes_of(const bundles::Source& source);

// What the percentages of a page are parts of.
inline constexpr const char* kSharesNote =
    "the percentages are shares of what all holders hold, which counts bytes as asked for; the "
    "totals of spaces count what the blocks take";

// The last section of a page; nothing where there are no notes.
void print_notes(const std::vector<std::string>& notes, const Terminal& terminal);

}  // namespace oomrec::tools::print

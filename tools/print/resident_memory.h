// What a process' resident memory consists of, by the latest look at its pages: kinds that add up
// (session::ResidentKind).
#pragma once

#include <string>

#include "tools/base/json.h"
#include "tools/bundles/store/source.h"

namespace oomrec::tools::print {

// When the look was: "at the last look, 1.2 s before the end". Empty: nobody has looked.
std::string time_of_look(const bundles::Source&);

// A line for each kind, the largest first; empty: nobody has looked.
std::string resident_memory_text(const bundles::Source&);

// Null: nobody has looked.
Json resident_memory_json(const bundles::Source&);

}  // namespace oomrec::tools::print

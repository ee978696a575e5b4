// What to try against a leak: rules over where it allocates.
#pragma once

#include <string>
#include <vector>

#include "tools/leaks/detect.h"

namespace oomrec::tools {

// Of the first rule that fits; there is always one.
std::string suggestion_of(const Leak& leak, const Stacks& stacks, const Places& places);

// Of all leaks, each text once, in the order of the leaks.
std::vector<std::string> suggestions_of(const Leaks& leaks, const Stacks& stacks,
                                        const Places& places);

}  // namespace oomrec::tools

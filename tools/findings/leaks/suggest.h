// What to try against a leak: rules over where it allocates.
#pragma once

#include <string>
#include <vector>

#include "tools/findings/leaks/detect.h"

namespace oomrec::tools::findings {

// Of the first rule that fits; there is always one.
std::string suggestion_of(const Leak& leak, const recording::Stacks& stacks,
                          const recording::Places& places);

// Of all leaks, each text once, in the order of the leaks.
std::vector<std::string> suggestions_of(const Leaks& leaks, const recording::Stacks& stacks,
                                        const recording::Places& places);

}  // namespace oomrec::tools::findings

// Suggestions for fixing a leak: rules over its stack.
#pragma once

#include <string>
#include <vector>

#include "tools/findings/leaks/detect.h"

namespace oomrec::tools::findings {

// The text of the first rule that matches. The last rule always does.
std::string suggestion_of(const Leak& leak, const recording::Stacks& stacks,
                          const recording::Locations& locations);

// The suggestions for all leaks, in their order, without duplicates.
std::vector<std::string> suggestions_of(const Leaks& leaks, const recording::Stacks& stacks,
                                        const recording::Locations& locations);

}  // namespace oomrec::tools::findings

// What a reader must know before trusting the figures: what was not seen, estimated, dropped.
#pragma once

#include <string>
#include <vector>

#include "tools/bundles/source.h"

namespace oomrec::tools {

std::vector<std::string> notes_of(const Source& source);

}  // namespace oomrec::tools

// Which drivers of GPUs a program met, and which of its ways to them were seen.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tools/analysis/recording.h"
#include "tools/json.h"

namespace oomrec::tools {

// Rows of name and sentence, of the drivers that were met: "CUDA", "hooked through …".
std::vector<std::pair<std::string, std::string>> driver_facts(const Recording& recording);

Json drivers_json(const Recording& recording);

}  // namespace oomrec::tools

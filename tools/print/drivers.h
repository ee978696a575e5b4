// Which drivers of GPUs a program met, and which of its ways to them were seen.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tools/base/json.h"
#include "tools/recording/reading/recording.h"

namespace oomrec::tools::print {

// Rows of name and sentence, of the drivers that were met: "CUDA", "hooked through …".
std::vector<std::pair<std::string, std::string>> driver_facts(
    const recording::Recording& recording);

Json drivers_json(const recording::Recording& recording);

}  // namespace oomrec::tools::print

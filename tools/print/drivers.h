// The GPU drivers that a program loaded, and by which routes its calls to them are hooked.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tools/base/json.h"
#include "tools/recording/reading/recording.h"

namespace oomrec::tools::print {

// Name and sentence of each loaded driver: "CUDA", "hooked through …".
std::vector<std::pair<std::string, std::string>> driver_facts(
    const recording::Recording& recording);

Json drivers_json(const recording::Recording& recording);

}  // namespace oomrec::tools::print

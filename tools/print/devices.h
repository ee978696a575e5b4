// The GPUs of a recording, for people and as JSON.
#pragma once

#include <string>
#include <vector>

#include "tools/base/json.h"
#include "tools/recording/reading/devices.h"

namespace oomrec::tools::print {

// Lines of a device: what this process holds on it, its limit, what the driver told, PyTorch.
std::string device_text(const recording::DeviceFigures&);

// Without what its holders are.
Json device_json(const recording::DeviceFigures&);

}  // namespace oomrec::tools::print

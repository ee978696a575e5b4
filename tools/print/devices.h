// The GPUs of a recording, for people and as JSON.
#pragma once

#include <string>
#include <vector>

#include "tools/analysis/devices.h"
#include "tools/json.h"

namespace oomrec::tools {

// Lines of a device: what this process holds on it, its limit, what the driver told, PyTorch.
std::string device_text(const DeviceFigures&);

// Without what its holders are.
Json device_json(const DeviceFigures&);

}  // namespace oomrec::tools

// The GPUs of a recording, as text and as JSON.
#pragma once

#include <string>
#include <vector>

#include "tools/base/json.h"
#include "tools/recording/reading/devices.h"

namespace oomrec::tools::print {

// What this process holds on the device, PyTorch's share of it, the limit, and the figures that the
// driver reported.
std::string device_text(const recording::DeviceFigures&);

// The device without its holders.
Json device_json(const recording::DeviceFigures&);

}  // namespace oomrec::tools::print

// The GPUs of a recording, and the drivers that its program loaded.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tools/base/json.h"
#include "tools/recording/reading/devices.h"
#include "tools/recording/reading/recording.h"

namespace oomrec::tools::sections {

// What this process holds on the device, PyTorch's share of it, the limit, and the figures that the
// driver reported.
std::string device_text(const recording::DeviceFigures&);

// The device without its holders.
Json device_json(const recording::DeviceFigures&);

// The GPU drivers that a program loaded, and by which routes its calls to them are hooked.

// Name and sentence of each loaded driver: "CUDA", "hooked through …".
std::vector<std::pair<std::string, std::string>> driver_facts(
    const recording::Recording& recording);

Json drivers_json(const recording::Recording& recording);

}  // namespace oomrec::tools::sections

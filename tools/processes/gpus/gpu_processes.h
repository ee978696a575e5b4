// The other processes on a recorded process's GPUs: gpu_processes.json in its bundle.
//
// The recorded process cannot call NVML (nvml.h). `oomrec run` and `oomrec watch` write the file as
// soon as they see a bundle of a GPU. For a running process, `oomrec show` calls NVML itself.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tools/base/json.h"
#include "tools/bundles/store/source.h"
#include "tools/processes/gpus/nvml.h"

namespace oomrec::tools::processes {

// Writes the file into those bundles of GPUs in the directories that lack it and were written at
// `since_ns` (since 1970) or later.
void write_gpu_processes(const std::vector<std::filesystem::path>& directories,
                         std::uint64_t since_ns);

// The other processes on the device: [{"pid", "program", "bytes"}…], the largest first. null: NVML
// was not called.
Json others_on(const bundles::Source&, const std::string& uuid);

// "    also used by python3 (pid 4711): 20.1 GiB", one line each; empty if there are none.
std::string others_on_text(const Json& others);

}  // namespace oomrec::tools::processes

// Who else is on a recorded process' GPUs: a file of the bundle, gpu_processes.json.
//
// The process itself cannot know: NVML, which does, is asked by who watches it. `oomrec run` and
// `watch` write the file as soon as they see a bundle of a GPU; of a living process `oomrec show`
// asks itself.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tools/base/json.h"
#include "tools/bundles/store/source.h"
#include "tools/processes/gpus/nvml.h"

namespace oomrec::tools::processes {

// Into the bundles of GPUs in these directories that were written at `since_ns` (since 1970) or
// later and have no such file yet.
void tell_gpu_processes(const std::vector<std::filesystem::path>& directories,
                        std::uint64_t since_ns);

// The processes on the device but for the recorded one: [{"pid", "program", "bytes"}…], who holds
// most first. null: nobody was asked.
Json others_on(const bundles::Source&, const std::string& uuid);

// "    also used by python3 (pid 4711): 20.1 GiB", one line each; empty where there is none.
std::string others_on_text(const Json& others);

}  // namespace oomrec::tools::processes

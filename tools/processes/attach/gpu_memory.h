// The GPU memory of a process that is attached to.
//
// The CUDA runtime looks the driver's functions up at its first call, and keeps their addresses;
// each library that is linked with the runtime statically has such a table of its own, in its
// variables. Those words are found from outside, while the process goes on. A second call in it
// redirects them, and takes over what the process uses of each device, as NVML says. Addresses
// elsewhere, as in Python's ctypes objects, are not found.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tools/processes/attach/remote_module.h"

namespace oomrec::tools::processes {

// The functions of loaded drivers that this copy of the recorder wraps, by their addresses.
std::map<std::uint64_t, std::string> wrapped_driver_functions(
    const std::vector<RemoteModule>& modules, const RemoteModule& copy);

// Call once the process is recorded. Does nothing in one without a driver. Throws Error: no thread
// came to a point where it can be done.
void attach_gpu_memory(pid_t pid);

}  // namespace oomrec::tools::processes

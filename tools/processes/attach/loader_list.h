// What the loader of another process says that it has loaded.
//
// A file in memory may be a C library that nothing calls: a program that reads symbols maps it as
// data, an emulator maps its guest's.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tools/processes/attach/remote_memory.h"

namespace oomrec::tools::processes {

// The addresses of the dynamic sections of all loaded modules. Empty: the loader has just begun, or
// changes its list now. nullopt: the process has no loader, so that it is statically linked.
std::optional<std::vector<std::uint64_t>> loaded_dynamic_sections(const RemoteMemory& memory);

}  // namespace oomrec::tools::processes

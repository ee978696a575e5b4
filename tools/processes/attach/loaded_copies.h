// The copies of the recorder that are loaded in another process.
#pragma once

#include <vector>

#include "tools/processes/attach/remote_memory.h"
#include "tools/processes/attach/remote_module.h"

namespace oomrec::tools::processes {

bool is_recorder(const RemoteModule& module);

// oomrec_attached (shim/attach/attach.cpp)
enum class CopyState : int { unused, records, is_idle };
CopyState state_of(const RemoteMemory& memory, const RemoteModule& copy);

// The copy that records the process since an attach; nullptr: none.
const RemoteModule* recording_copy(const RemoteMemory& memory,
                                   const std::vector<RemoteModule>& modules);

// The same of a process that is recorded, whether since an attach or from its start.
const RemoteModule* any_recording_copy(const RemoteMemory& memory,
                                       const std::vector<RemoteModule>& modules);

}  // namespace oomrec::tools::processes

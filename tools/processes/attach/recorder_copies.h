// The copies of the recorder that are loaded in another process. One that has recorded and was
// detached from may record again, once nothing of its last recording is in use.
//
// It ends the last use: each thread is stopped, one at a time, seen outside of the copy, and its
// pointer to its state in the recorder is set to null. A thread that enters a hook after that (by a
// function pointer that the program has looked up) finds the recorder off and no state of its own.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "tools/processes/attach/remote_memory.h"
#include "tools/processes/attach/remote_module.h"

namespace oomrec::tools::processes {

// `thread_state`: where a thread has that pointer, from its control block. False: until then, a
// thread stays in the copy, for example asleep in a call that it has hooked. Throws Error: no
// permission.
bool free_idle_copy(const RemoteMemory& memory, const RemoteModule& copy, std::int64_t thread_state,
                    std::chrono::steady_clock::time_point until);

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

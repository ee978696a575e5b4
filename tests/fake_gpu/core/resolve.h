// Looks functions up by name, as documented for cuGetProcAddress and hipGetProcAddress.
#pragma once

namespace fake_gpu {

enum class Found : int { success = 0, no_such_name = 1, version_too_old = 2 };

// The newest form of `name` that `version` has. name: without _v2 or the like; per_thread: prefer
// the form of the per-thread default stream. *function: the exported address, or null. A result.
int resolve(const char* name, void** function, int version, bool per_thread, Found* found);

}  // namespace fake_gpu

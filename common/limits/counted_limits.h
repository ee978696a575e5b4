// Limits that count tasks, mappings or promised memory: what refuses a thread, a fork or a mapping
// where no limit on bytes does.
//
// Read from the kernel at such a refusal (some 50 µs; the mappings of a process with 65,530 of them
// take 50 ms). Roots are recorder/system's.
#pragma once

#include "common/session/layout.h"
#include "common/system/hook_scope.h"

namespace oomrec::limit {

// What EAGAIN may mean: RLIMIT_NPROC, pids.max, threads-max, pid_max.
void read_task_limits(InHook, session::CountedLimits&) noexcept;

// What ENOMEM may mean: the strict accounting of promised memory, vm.max_map_count.
void read_mapping_limits(InHook, session::CountedLimits&) noexcept;

}  // namespace oomrec::limit

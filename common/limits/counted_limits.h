// Limits on tasks, mappings and committed memory: why a thread, a fork or a mapping fails without a
// limit on the process' bytes.
//
// Read from the kernel after such a failure (about 50 µs; 50 ms for a process with 65,530
// mappings). Paths start at system::g_roots.
#pragma once

#include "common/session/layout.h"
#include "common/system/hook_scope.h"

namespace oomrec::limit {

// Possible reasons of EAGAIN: RLIMIT_NPROC, pids.max, threads-max, pid_max.
void read_task_limits(InHook, session::CountedLimits&) noexcept;

// Possible reasons of ENOMEM: strict overcommit accounting, vm.max_map_count.
void read_mapping_limits(InHook, session::CountedLimits&) noexcept;

}  // namespace oomrec::limit

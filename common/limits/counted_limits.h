// Limits on tasks, mappings and committed memory: why a thread, a fork or a mapping fails without a
// limit on the process' bytes.
//
// Read from the kernel after such a failure (about 50 µs; 50 ms for a process with 65,530
// mappings). Paths start at system::g_roots.
#pragma once

#include <cstdint>
#include <string_view>

#include "common/session/layout.h"
#include "common/system/hook_scope.h"

namespace oomrec::limit {

// Possible reasons of EAGAIN: RLIMIT_NPROC, pids.max, threads-max, pid_max.
void read_task_limits(InHook, session::CountedLimits&) noexcept;

// Possible reasons of ENOMEM: strict overcommit accounting, vm.max_map_count.
void read_mapping_limits(InHook, session::CountedLimits&) noexcept;

// --- Privileges that exempt a process from a limit

// The effective capabilities in the text of /proc/self/status.
std::uint64_t effective_capabilities(std::string_view status) noexcept;

// Whether this is the machine's initial user namespace: in another one root has no privileges over
// the machine.
bool is_in_initial_namespace() noexcept;

}  // namespace oomrec::limit

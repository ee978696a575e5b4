// Why the kernel does not let this command trace a process, and what helps.
#pragma once

#include <sys/types.h>

#include <string>

#include "tools/base/error.h"

namespace oomrec::tools::processes {

// What decides about it (ptrace(2), "Ptrace access mode checking").
struct TraceRights {
  bool is_root = false;
  bool has_capability = false;  // CAP_SYS_PTRACE
  bool is_own = true;           // the process belongs to the command's user
  bool is_setuid = false;       // it runs with another user's rights
  bool is_dumpable = true;      // as far as /proc tells: that of a root's process tells nothing
  std::string scope;            // kernel.yama.ptrace_scope; empty: no Yama
};

// `proc`: where procfs is mounted.
TraceRights trace_rights(pid_t pid, const std::string& proc = "/proc");

// `error`: the errno of the refusal.
Error not_permitted(pid_t pid, int error, const TraceRights& rights);

}  // namespace oomrec::tools::processes

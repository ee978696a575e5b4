// Why a process cannot be attached to: what the kernel permits, limits that leave no room for
// the recorder, and the errors that say so.
#pragma once

#include <fmt/format.h>
#include <sys/types.h>

#include <optional>
#include <string>
#include <utility>

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

// The limits on a process that leave no room for the recorder in it.

// Throws Error: its cgroup is so full that the kernel would kill a process for the recorder's first
// MiB.
void require_room_in_cgroup(pid_t pid);

// A resource limit that is used up, as far as /proc tells.
struct UsedUpLimit {
  std::string what;    // "its address space may be 40.0 MiB (RLIMIT_AS), and 39.9 MiB are in use"
  std::string remedy;  // a command that raises it from outside
};
std::optional<UsedUpLimit> used_up_limit(pid_t pid);

// The errors of an attach that is refused.

inline constexpr const char* kStartRecorded = "Start it with the recorder: oomrec run -- PROGRAM";

inline Error refusal(const std::string& what, std::string what_to_do) {
  return Error{Exit::bad_input, what, std::move(what_to_do)};
}

[[noreturn]] inline void throw_ended(pid_t pid) {
  throw refusal(fmt::format("process {} ended, or replaced its program, meanwhile", pid),
                "Nothing was left in it.");
}

}  // namespace oomrec::tools::processes

#include "tools/processes/attach/permission.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <sstream>

#include "tools/base/number.h"
#include "tools/processes/attach/refusal.h"
#include "tools/processes/attach/threads.h"

namespace oomrec::tools::processes {
namespace {

bool has_trace_capability() {
  constexpr unsigned kSysPtrace = 19;  // linux/capability.h
  const auto effective = parse_number<std::uint64_t>(status_field(getpid(), "CapEff"), 16);
  return effective && (*effective >> kSysPtrace & 1) != 0;
}

}  // namespace

TraceRights trace_rights(pid_t pid, const std::string& proc) {
  TraceRights rights;
  rights.is_root = geteuid() == 0;
  rights.has_capability = has_trace_capability();
  std::istringstream users{status_field(pid, "Uid", proc)};
  uid_t real = 0, effective = 0;
  if (users >> real >> effective) {
    rights.is_own = real == geteuid();
    rights.is_setuid = real != effective;
    // The files of a process that is not dumpable belong to root (proc(5)).
    struct stat owner {};
    rights.is_dumpable = stat(fmt::format("{}/{}/status", proc, pid).c_str(), &owner) != 0 ||
                         owner.st_uid == effective;
  }
  std::ifstream scope{proc + "/sys/kernel/yama/ptrace_scope"};
  std::getline(scope, rights.scope);
  return rights;
}

Error not_permitted(pid_t pid, int error, const TraceRights& rights) {
  const std::string what = fmt::format("the kernel does not let this user trace process {}: {}",
                                       pid, std::strerror(error));
  const std::string as_root = fmt::format("sudo oomrec attach {}", pid);
  if (rights.scope == "3")
    return refusal(
        what + "; kernel.yama.ptrace_scope is 3: it forbids all tracing until the next boot",
        kStartRecorded);
  if (rights.is_root && !rights.has_capability)
    return refusal(what + "; this root lacks CAP_SYS_PTRACE",
                   "In a container: docker run --cap-add SYS_PTRACE, or attach from the host.");
  if (rights.is_root)
    return refusal(what + "; it is of another user namespace, or a security module forbids it",
                   kStartRecorded);
  if (!rights.is_own)
    return refusal(what + "; it belongs to another user",
                   "Run the command as that user or as root: " + as_root);
  if (rights.is_setuid)
    return refusal(what + "; it has another user's rights (setuid)",
                   "oomrec does not record privileged programs.");
  if (!rights.is_dumpable)
    return refusal(what +
                       "; it is not dumpable (prctl PR_SET_DUMPABLE, or a file that its user "
                       "may not read)",
                   "Only root may: " + as_root);
  if (rights.scope == "1")
    return refusal(what + "; kernel.yama.ptrace_scope is 1: only a parent may, or root",
                   as_root + "; or, until the next boot: sudo sysctl kernel.yama.ptrace_scope=0");
  if (rights.scope == "2")
    return refusal(what + "; kernel.yama.ptrace_scope is 2: only root may",
                   as_root + "; or, until the next boot: sudo sysctl kernel.yama.ptrace_scope=0");
  return refusal(what + "; it has more privileges, or a security module forbids it",
                 "Try as root: " + as_root);
}

}  // namespace oomrec::tools::processes

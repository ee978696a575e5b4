#include "tools/processes/attach/permission.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string_view>

#include "common/limits/ceilings.h"
#include "common/session/entries.h"
#include "tools/base/directory.h"
#include "tools/base/proc.h"
#include "tools/base/text.h"
#include "tools/processes/attach/remote_memory.h"
#include "tools/processes/attach/tracee.h"

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

namespace {

// Measured: a sampled recording makes 0.6 to 1.1 MiB resident while it begins, more as it fills its
// tables, and writing a bundle needs about as much again.
constexpr std::uint64_t kLeastRoomInCgroup = std::uint64_t{4} << 20;

// The library and its recording map 4.6 MiB to begin with.
constexpr std::uint64_t kAddressSpace = std::uint64_t{8} << 20;
constexpr std::uint64_t kLeastFile = std::uint64_t{256} << 10;  // recorder/session/create.cpp
constexpr std::uint64_t kDescriptors = 2;  // at a time: a directory, a file in it
constexpr std::uint64_t kMappings = 64;

// The soft limit of this row of /proc/PID/limits; nullopt: unlimited, or not readable.
std::optional<std::uint64_t> soft_limit(pid_t pid, std::string_view row) {
  std::ifstream file{fmt::format("/proc/{}/limits", pid)};
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(row)) continue;
    std::istringstream words{line.substr(row.size())};
    std::string number;
    words >> number;
    return parse_number<std::uint64_t>(number);
  }
  return std::nullopt;
}

std::string prlimit(pid_t pid, std::string_view option) {
  return fmt::format("Raise it: prlimit --pid {} --{}", pid, option);
}

// A limit on bytes of which so many are in use.
struct BytesLimit {
  std::string_view row, field, name, option;
};
constexpr BytesLimit kBytesLimits[] = {
    {"Max address space", "VmSize", "its address space (RLIMIT_AS)", "as=unlimited:"},
    {"Max data size", "VmData", "its data (RLIMIT_DATA)", "data=unlimited:"},
    {"Max locked memory", "VmLck",
     "its memory, all of which it locks by mlockall (RLIMIT_MEMLOCK),", "memlock=unlimited:"},
};

std::optional<UsedUpLimit> used_up_bytes(pid_t pid, const BytesLimit& limit) {
  const auto most = soft_limit(pid, limit.row);
  const std::uint64_t used = status_bytes(pid, limit.field);
  if (!most || used == 0 || used + kAddressSpace < *most) return std::nullopt;
  return UsedUpLimit{
      fmt::format("{} may be {}, and {} are in use", limit.name, size_text(*most), size_text(used)),
      prlimit(pid, limit.option)};
}

std::optional<UsedUpLimit> used_up_descriptors(pid_t pid) {
  const auto most = soft_limit(pid, "Max open files");
  const std::uint64_t open = entries_of(fmt::format("/proc/{}/fd", pid)).size();
  if (!most || open + kDescriptors <= *most) return std::nullopt;
  return UsedUpLimit{
      fmt::format("it may have {} files open (RLIMIT_NOFILE), and {} are", *most, open),
      prlimit(pid, fmt::format("nofile={}:", *most + 16))};
}

std::optional<UsedUpLimit> used_up_file_size(pid_t pid) {
  const auto most = soft_limit(pid, "Max file size");
  if (!most || *most >= kLeastFile) return std::nullopt;
  return UsedUpLimit{fmt::format("its files may have {} (RLIMIT_FSIZE), and a recording needs {}",
                                 size_text(*most), size_text(kLeastFile)),
                     prlimit(pid, "fsize=unlimited:")};
}

std::optional<UsedUpLimit> used_up_mappings(pid_t pid) {
  std::ifstream file{"/proc/sys/vm/max_map_count"};
  std::uint64_t most = 0;
  const std::uint64_t used = RemoteMemory{pid}.mappings().size();
  if (!(file >> most) || used + kMappings < most) return std::nullopt;
  return UsedUpLimit{
      fmt::format("it may have {} mappings (vm.max_map_count), and {} are there", most, used),
      fmt::format("Raise it: sysctl vm.max_map_count={}", 2 * most)};
}

}  // namespace

void require_room_in_cgroup(pid_t pid) {
  limit::Ceilings seen;
  limit::CgroupDirectories directories{};
  limit::read_cgroup(OutsideHooks::in_hook(), seen, &directories, pid);
  if (seen.cgroup_limit_bytes == 0 || seen.cgroup_limit_bytes == session::kUnlimited ||
      seen.cgroup_used_bytes + kLeastRoomInCgroup <= seen.cgroup_limit_bytes)
    return;
  throw refusal(
      fmt::format("the cgroup of process {} is full: {} of its limit of {} are in use, and the "
                  "recorder needs {} more, for which the kernel would kill a process",
                  pid, size_text(seen.cgroup_used_bytes), size_text(seen.cgroup_limit_bytes),
                  size_text(kLeastRoomInCgroup)),
      fmt::format("Raise the limit first: {}/{}", printable(directories.limiting),
                  directories.v1 ? "memory.limit_in_bytes" : "memory.max"));
}

std::optional<UsedUpLimit> used_up_limit(pid_t pid) {
  for (const BytesLimit& limit : kBytesLimits)
    if (auto found = used_up_bytes(pid, limit)) return found;
  if (auto found = used_up_descriptors(pid)) return found;
  if (auto found = used_up_mappings(pid)) return found;
  return used_up_file_size(pid);
}

}  // namespace oomrec::tools::processes

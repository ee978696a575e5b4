#include "common/limits/counted_limits.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <sys/resource.h>

#include <algorithm>
#include <string_view>

#include "common/limits/cgroup.h"
#include "common/limits/process_files.h"
#include "common/machine/page.h"
#include "common/system/files.h"
#include "common/system/syscalls.h"
#include "common/system/text.h"

namespace oomrec::limit {
namespace {

using session::CountedLimits;
using session::kUnlimited;
using system::Text;

// Each has a buffer, so none may be inlined into another: a hook uses little stack.

[[gnu::noinline]] std::uint64_t number_in_file(const char* file, std::uint64_t otherwise) noexcept {
  char path[kProcessPathBytes], text[64];
  Text(path) << system::g_roots.proc << file;
  return system::read_file(path, text, sizeof(text)) > 0 ? system::number_in(text) : otherwise;
}

// setrlimit(2), RLIMIT_NPROC: not enforced for root, CAP_SYS_ADMIN and CAP_SYS_RESOURCE.
[[gnu::noinline]] bool read_own_tasks(CountedLimits& out) noexcept {
  char path[kProcessPathBytes], text[1408];
  Text(path) << system::g_roots.proc << "/self/status";
  if (system::read_file(path, text, sizeof(text)) <= 0) return false;
  out.own_tasks = system::number_in(system::field(text, "Threads:"));
  constexpr std::uint64_t kExempting = std::uint64_t{1} << CAP_SYS_ADMIN | std::uint64_t{1}
                                                                               << CAP_SYS_RESOURCE;
  return system::number_in(system::field(text, "Uid:")) == 0 ||
         (effective_capabilities(text) & kExempting) != 0;
}

void read_user_limit(CountedLimits& out) noexcept {
  const bool exempt = read_own_tasks(out) && is_in_initial_namespace();
  rlimit64 limits{};
  if (system::call(SYS_prlimit64, 0, RLIMIT_NPROC, nullptr, &limits) != 0) return;
  const bool none = exempt || limits.rlim_cur == RLIM64_INFINITY;
  out.own_tasks_limit = none ? kUnlimited : limits.rlim_cur;
}

// The cgroup with the fewest tasks left, among its own and the ancestors.
[[gnu::noinline]] void read_cgroup_tasks(InHook hook, CountedLimits& out) noexcept {
  CgroupPath cgroup{hook, "pids", "/pids.current", "/pids.current"};
  if (!cgroup.is_found()) return;
  std::uint64_t tightest = kUnlimited;
  do {
    std::uint64_t limit = 0;
    std::uint64_t used = 0;
    if (!cgroup.read("/pids.max", limit) || !cgroup.read("/pids.current", used)) continue;
    const std::uint64_t left = limit == kUnlimited ? kUnlimited - 1 : limit - std::min(limit, used);
    if (left >= tightest) continue;
    tightest = left;
    out.cgroup_tasks = used;
    out.cgroup_tasks_limit = limit;
  } while (cgroup.move_to_parent());
}

// "0.00 0.01 0.05 2/345 6789": 345 tasks.
[[gnu::noinline]] std::uint64_t machine_tasks() noexcept {
  char path[kProcessPathBytes], text[128];
  Text(path) << system::g_roots.proc << "/loadavg";
  if (system::read_file(path, text, sizeof(text)) <= 0) return 0;
  const std::string_view line = text;
  const std::size_t slash = line.find('/');
  return slash == line.npos ? 0 : system::number_in(line.substr(slash + 1));
}

// Whether the kernel's reserve for the administrator is this process'.
[[gnu::noinline]] bool is_administrator() noexcept {
  char path[kProcessPathBytes], text[1408];
  Text(path) << system::g_roots.proc << "/self/status";
  if (system::read_file(path, text, sizeof(text)) <= 0) return false;
  return (effective_capabilities(text) & std::uint64_t{1} << CAP_SYS_ADMIN) != 0 &&
         is_in_initial_namespace();
}

// The part of CommitLimit that the kernel does not give to this process (mm/util.c,
// __vm_enough_memory()).
std::uint64_t commit_reserves() noexcept {
  const std::uint64_t mapped = number_in_file("/self/statm", 0) * machine::page_bytes();
  const std::uint64_t of_users = number_in_file("/sys/vm/user_reserve_kbytes", 0) * 1024;
  const std::uint64_t of_root = number_in_file("/sys/vm/admin_reserve_kbytes", 0) * 1024;
  return std::min(mapped / 32, of_users) + (is_administrator() ? 0 : of_root);
}

[[gnu::noinline]] void read_committed_memory(CountedLimits& out) noexcept {
  constexpr std::uint64_t kStrict = 2;
  out.commit_limit_bytes = kUnlimited;
  if (number_in_file("/sys/vm/overcommit_memory", 0) != kStrict) return;
  char path[kProcessPathBytes], text[1408];
  Text(path) << system::g_roots.proc << "/meminfo";
  if (system::read_file(path, text, sizeof(text)) <= 0) return;
  const std::uint64_t limit = system::number_in(system::field(text, "CommitLimit:")) * 1024;
  out.commit_limit_bytes = limit - std::min(limit, commit_reserves());
  out.committed_bytes = system::number_in(system::field(text, "Committed_AS:")) * 1024;
}

[[gnu::noinline]] std::uint64_t count_mappings() noexcept {
  char path[kProcessPathBytes], text[1408];
  Text(path) << system::g_roots.proc << "/self/maps";
  const system::File file = system::File::open(path, O_RDONLY);
  if (!file.is_open()) return 0;
  std::uint64_t lines = 0;
  for (long bytes; (bytes = file.read(text, sizeof(text))) > 0;)
    lines += static_cast<std::uint64_t>(std::count(text, text + bytes, '\n'));
  return lines;
}

}  // namespace

void read_task_limits(InHook hook, CountedLimits& out) noexcept {
  read_user_limit(out);
  read_cgroup_tasks(hook, out);
  out.machine_tasks = machine_tasks();
  out.threads_max = number_in_file("/sys/kernel/threads-max", kUnlimited);
  // After wrapping around, the kernel does not reuse the first 300 (kernel/pid.c, RESERVED_PIDS).
  constexpr std::uint64_t kReserved = 300;
  const std::uint64_t pids = number_in_file("/sys/kernel/pid_max", kUnlimited);
  out.pid_max = pids > kReserved && pids != kUnlimited ? pids - kReserved : pids;
}

void read_mapping_limits(InHook, CountedLimits& out) noexcept {
  read_committed_memory(out);
  out.mappings = count_mappings();
  out.max_mappings = number_in_file("/sys/vm/max_map_count", kUnlimited);
}

std::uint64_t effective_capabilities(std::string_view status) noexcept {
  std::uint64_t value = 0;
  for (const char c : system::field(status, "CapEff:")) {
    if (c >= '0' && c <= '9') value = value << 4 | static_cast<std::uint64_t>(c - '0');
    if (c >= 'a' && c <= 'f') value = value << 4 | static_cast<std::uint64_t>(c - 'a' + 10);
  }
  return value;
}

// It has a buffer, so it may not be inlined: a hook uses little stack.
[[gnu::noinline]] bool is_in_initial_namespace() noexcept {
  char path[320], text[64];
  system::Text(path) << system::g_roots.proc << "/self/uid_map";
  if (system::read_file(path, text, sizeof(text)) <= 0) return true;
  std::string_view rest = text;
  const std::uint64_t inside = system::number_in(rest, &rest);
  const std::uint64_t outside = system::number_in(rest, &rest);
  return inside == 0 && outside == 0 && system::number_in(rest) == 0xffff'ffff;
}

}  // namespace oomrec::limit

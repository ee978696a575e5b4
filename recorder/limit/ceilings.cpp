#include "recorder/limit/ceilings.h"

#include <sys/resource.h>
#include <sys/sysinfo.h>

#include <string_view>

#include "recorder/limit/cgroup.h"
#include "recorder/session/layout.h"
#include "recorder/system/files.h"
#include "recorder/system/syscalls.h"
#include "recorder/system/text.h"

namespace oomrec::limit {
namespace {

using session::kUnlimited;
using system::Text;

constexpr std::uint64_t kPageBytes = 4096;
constexpr std::size_t kPathBytes = kCgroupPathBytes;

// What differs between the two versions of the memory controller.
struct Controller {
  const char* limit_file;
  const char* usage_file;
  std::string_view inactive;  // line of memory.stat, with its hierarchy
};
constexpr Controller kV1 = {"/memory.limit_in_bytes", "/memory.usage_in_bytes",
                            "total_inactive_file "};
constexpr Controller kV2 = {"/memory.max", "/memory.current", "inactive_file "};

std::uint64_t rlimit_bytes(int resource) noexcept {
  rlimit64 limits{};
  if (system::call(SYS_prlimit64, 0, resource, nullptr, &limits) != 0) return 0;
  return limits.rlim_cur == RLIM64_INFINITY ? kUnlimited : limits.rlim_cur;
}

// Each with a buffer, so none may be inlined into another: a hook uses little stack.

[[gnu::noinline]] std::uint64_t inactive_bytes(const char* directory,
                                               const Controller& controller) noexcept {
  char path[kPathBytes];
  Text name(path);
  name << directory << "/memory.stat";
  char text[1408];  // total_inactive_file is among the last of v1's 36 lines, near its byte 1,000
  if (name.truncated() || system::read_file(path, text, sizeof(text)) <= 0) return 0;
  return system::number_in(system::field(text, controller.inactive));
}

}  // namespace

[[gnu::noinline]] void read_usage(InHook, Ceilings& out) noexcept {
  char path[kPathBytes], text[1408];
  Text(path) << system::g_roots.proc << "/self/status";
  if (system::read_file(path, text, sizeof(text)) <= 0) return;
  const auto bytes = [&](std::string_view name) noexcept {
    return system::number_in(system::field(text, name)) * 1024;
  };
  out.vm_bytes = bytes("VmSize:");
  out.rss_bytes = bytes("VmRSS:");
  out.data_bytes = bytes("VmData:");
}

[[gnu::noinline]] void read_cgroup(InHook hook, Ceilings& out) noexcept {
  CgroupPath cgroup{hook, "memory", kV1.usage_file, kV2.usage_file};
  if (!cgroup.known()) return;
  const Controller& controller = cgroup.is_v1() ? kV1 : kV2;
  do {
    std::uint64_t limit = 0;
    std::uint64_t used = 0;
    if (cgroup.read(controller.limit_file, limit) &&
        (out.cgroup_limit_bytes == 0 || limit < out.cgroup_limit_bytes) &&
        cgroup.read(controller.usage_file, used)) {
      const std::uint64_t inactive = inactive_bytes(cgroup.directory(), controller);
      out.cgroup_limit_bytes = limit;
      out.cgroup_used_bytes = used > inactive ? used - inactive : 0;
    }
  } while (cgroup.climb());
}

std::uint64_t read_rss(InHook) noexcept {
  char path[kPathBytes], text[128];
  Text(path) << system::g_roots.proc << "/self/statm";
  if (system::read_file(path, text, sizeof(text)) <= 0) return 0;
  std::string_view rest;
  system::number_in(text, &rest);
  return system::number_in(rest) * kPageBytes;
}

Ceilings read_ceilings(InHook hook) noexcept {
  Ceilings out;
  read_usage(hook, out);
  out.rlimit_as_bytes = rlimit_bytes(RLIMIT_AS);
  out.rlimit_data_bytes = rlimit_bytes(RLIMIT_DATA);
  struct sysinfo system_wide {};
  if (system::call(SYS_sysinfo, &system_wide) == 0) {
    out.ram_bytes = system_wide.totalram * system_wide.mem_unit;
    out.swap_bytes = system_wide.totalswap * system_wide.mem_unit;
  }
  read_cgroup(hook, out);
  return out;
}

}  // namespace oomrec::limit

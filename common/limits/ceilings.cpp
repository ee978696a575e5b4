#include "common/limits/ceilings.h"

#include <sys/resource.h>
#include <sys/sysinfo.h>

#include <string_view>

#include "common/limits/cgroup.h"
#include "common/limits/process_files.h"
#include "common/session/layout.h"
#include "common/system/files.h"
#include "common/system/syscalls.h"
#include "common/system/text.h"

namespace oomrec::limit {
namespace {

using session::kUnlimited;
using system::Text;

// The differences between versions 1 and 2 of the memory controller.
struct Controller {
  const char* limit_file;
  const char* usage_file;
  std::string_view inactive;    // line of memory.stat that includes descendants
  const char* events_files[2];  // line "oom_kill N": own kills, or including descendants
};
constexpr Controller kV1 = {"/memory.limit_in_bytes",
                            "/memory.usage_in_bytes",
                            "total_inactive_file ",
                            {"/memory.oom_control", "/memory.oom_control"}};
constexpr Controller kV2 = {
    "/memory.max", "/memory.current", "inactive_file ", {"/memory.events.local", "/memory.events"}};

std::uint64_t rlimit_bytes(int resource) noexcept {
  rlimit64 limits{};
  if (system::call(SYS_prlimit64, 0, resource, nullptr, &limits) != 0) return 0;
  return limits.rlim_cur == RLIM64_INFINITY ? kUnlimited : limits.rlim_cur;
}

// Each has a buffer, so none may be inlined into another: a hook uses little stack.

[[gnu::noinline]] std::uint64_t inactive_bytes(const char* directory,
                                               const Controller& controller) noexcept {
  char text[1408];  // total_inactive_file is among the last of v1's 36 lines, near its byte 1,000
  if (read_cgroup_file(directory, "/memory.stat", text, sizeof(text)) <= 0) return 0;
  return system::number_in(system::field(text, controller.inactive));
}

// Whether the root of version 2 is mounted, of a kernel with memory cgroups. It has no limit of its
// own, unlike the root of a namespace, where the files are those of another cgroup.
[[gnu::noinline]] bool is_version_2_root() noexcept {
  char path[kCgroupPathBytes], text[256];
  Text(path) << system::g_roots.cgroup << "/cgroup.controllers";
  const long bytes = system::read_file(path, text, sizeof(text));
  if (bytes <= 0) return false;
  const std::string_view controllers{text, static_cast<std::size_t>(bytes)};
  return controllers.find("memory") != controllers.npos;
}

}  // namespace

[[gnu::noinline]] void read_usage(InHook, Ceilings& out) noexcept {
  char text[1408];
  const auto has_memory = [](std::string_view status) noexcept {
    return !system::field(status, "VmSize:").empty();
  };
  if (read_process_file(0, "/status", text, sizeof(text), has_memory) <= 0) return;
  const auto bytes = [&](std::string_view name) noexcept {
    return system::number_in(system::field(text, name)) * 1024;
  };
  out.vm_bytes = bytes("VmSize:");
  out.rss_bytes = bytes("VmRSS:");
  out.data_bytes = bytes("VmData:");
}

[[gnu::noinline]] void read_cgroup(InHook hook, Ceilings& out, CgroupDirectories* directories,
                                   int process) noexcept {
  if (directories != nullptr) *directories = {};
  CgroupPath cgroup{hook,
                    "memory",
                    kV1.usage_file,
                    kV2.usage_file,
                    directories != nullptr ? &directories->named : nullptr,
                    process};
  if (!cgroup.is_found()) return;
  const Controller& controller = cgroup.is_v1() ? kV1 : kV2;
  if (directories != nullptr) {
    directories->v1 = cgroup.is_v1();
    Text(directories->own) << cgroup.directory();
  }
  do {
    std::uint64_t limit = 0;
    std::uint64_t used = 0;
    if (cgroup.read(controller.limit_file, limit) &&
        (out.cgroup_limit_bytes == 0 || limit < out.cgroup_limit_bytes) &&
        cgroup.read(controller.usage_file, used)) {
      const std::uint64_t inactive = inactive_bytes(cgroup.directory(), controller);
      out.cgroup_limit_bytes = limit;
      out.cgroup_used_bytes = used > inactive ? used - inactive : 0;
      if (directories != nullptr) Text(directories->limiting) << cgroup.directory();
    }
  } while (cgroup.move_to_parent());
  if (out.cgroup_limit_bytes == 0 && !cgroup.is_v1() && cgroup.is_root() && is_version_2_root())
    out.cgroup_limit_bytes = kUnlimited;
}

bool read_cgroup_usage(InHook, const CgroupDirectories& directories,
                       std::uint64_t& used_bytes) noexcept {
  const Controller& controller = directories.v1 ? kV1 : kV2;
  std::uint64_t used = 0;
  if (directories.limiting[0] == '\0' ||
      !read_cgroup_number(directories.limiting, controller.usage_file, used))
    return false;
  const std::uint64_t inactive = inactive_bytes(directories.limiting, controller);
  used_bytes = used > inactive ? used - inactive : 0;
  return true;
}

bool read_cgroup_limit(InHook, const CgroupDirectories& directories,
                       std::uint64_t& limit_bytes) noexcept {
  const Controller& controller = directories.v1 ? kV1 : kV2;
  return directories.limiting[0] != '\0' &&
         read_cgroup_number(directories.limiting, controller.limit_file, limit_bytes);
}

[[gnu::noinline]] bool read_cgroup_kills(InHook, const CgroupDirectories& directories,
                                         std::uint64_t& kills) noexcept {
  char path[kCgroupPathBytes + 32], text[256];
  if (directories.own[0] == '\0') return false;
  for (const char* const file : (directories.v1 ? kV1 : kV2).events_files) {
    Text(path) << directories.own << file;
    if (system::read_file(path, text, sizeof(text)) <= 0) continue;
    const std::string_view line = system::field(text, "oom_kill ");
    kills = system::number_in(line);
    return !line.empty();
  }
  return false;
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

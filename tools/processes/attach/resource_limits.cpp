#include "tools/processes/attach/resource_limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <sstream>
#include <string_view>

#include "common/limits/ceilings.h"
#include "common/session/entries.h"
#include "tools/base/directory.h"
#include "tools/base/number.h"
#include "tools/base/text.h"
#include "tools/processes/attach/refusal.h"
#include "tools/processes/attach/remote_memory.h"
#include "tools/processes/attach/threads.h"

namespace oomrec::tools::processes {
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

std::uint64_t status_bytes(pid_t pid, std::string_view field) {
  std::istringstream words{status_field(pid, field)};
  std::uint64_t kib = 0;
  words >> kib;
  return kib * 1024;
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

#include "common/limits/health.h"

#include <fcntl.h>
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

using session::Health;
using session::kUnlimited;
using system::Text;

void set(std::atomic<std::uint64_t>& word, std::uint64_t value) noexcept {
  word.store(value, std::memory_order_relaxed);
}
std::uint64_t get(const std::atomic<std::uint64_t>& word) noexcept {
  return word.load(std::memory_order_relaxed);
}

// Each has a buffer, so none may be inlined into another: a hook uses little stack.

[[gnu::noinline]] bool read_pressure(const char* directory, const char* file,
                                     Health& health) noexcept {
  char text[256];
  if (read_cgroup_file(directory, file, text, sizeof(text)) <= 0) return false;
  health.pressure_some.store(hundredths(system::field(text, "some avg10=")),
                             std::memory_order_relaxed);
  health.pressure_full.store(hundredths(system::field(text, "full avg10=")),
                             std::memory_order_relaxed);
  return true;
}

// VmSwap is in the second half of about 1,500 bytes.
[[gnu::noinline]] void read_swap(Health& health, int process) noexcept {
  static constexpr std::string_view kName = "VmSwap:";
  char text[1408];
  const auto has_swap = [](std::string_view status) noexcept {
    return !system::field(status, kName).empty();
  };
  if (read_process_file(process, "/status", text, sizeof(text), has_swap) > 0)
    set(health.swap_bytes, system::number_in(system::field(text, kName)) * 1024);
}

// Kills on the whole machine: a line of the 4 KiB of /proc/vmstat, which is read in pieces that
// overlap by a line.
[[gnu::noinline]] void read_system_kills(Health& health) noexcept {
  constexpr std::string_view kLine = "\noom_kill ";
  constexpr std::size_t kOverlap = 64;
  char path[kProcessPathBytes], text[1024];
  Text(path) << system::g_roots.proc << "/vmstat";
  const system::File file = system::File::open(path, O_RDONLY);
  for (std::uint64_t offset = 0; file.is_open();) {
    const long bytes = file.read_at(offset, text, sizeof(text));
    if (bytes <= 0) return;
    const std::string_view piece{text, static_cast<std::size_t>(bytes)};
    const std::size_t at = piece.find(kLine);
    if (at != piece.npos && piece.find('\n', at + 1) != piece.npos)
      return set(health.system_oom_kills, system::number_in(piece.substr(at + kLine.size())));
    if (piece.size() <= kOverlap) return;
    offset += piece.size() - kOverlap;
  }
}

// Address space and resident memory; "0 0 …" without either.
bool has_memory(std::string_view statm) noexcept { return system::number_in(statm) != 0; }

[[gnu::noinline]] void read_size(Health& health, int process) noexcept {
  char text[128];
  if (read_process_file(process, "/statm", text, sizeof(text), has_memory) <= 0) return;
  std::string_view rest;
  set(health.vm_bytes, system::number_in(text, &rest) * machine::page_bytes());
  set(health.rss_bytes, system::number_in(rest) * machine::page_bytes());
}

std::uint64_t not_resident(const Health& health) noexcept {
  const std::uint64_t live = get(health.live_bytes);
  const std::uint64_t touched = get(health.rss_bytes) + get(health.swap_bytes);
  return live > touched ? live - touched : 0;
}

}  // namespace

[[gnu::noinline]] void read_available_memory(Health& health) noexcept {
  char path[kProcessPathBytes], text[256];
  Text(path) << system::g_roots.proc << "/meminfo";
  if (system::read_file(path, text, sizeof(text)) > 0)
    set(health.available_bytes, system::number_in(system::field(text, "MemAvailable:")) * 1024);
}

std::uint64_t read_anonymous_bytes(InHook) noexcept {
  char text[128];
  if (read_process_file(0, "/statm", text, sizeof(text), has_memory) <= 0) return 0;
  std::string_view rest;
  system::number_in(text, &rest);
  const std::uint64_t resident = system::number_in(rest, &rest), shared = system::number_in(rest);
  return (resident - std::min(resident, shared)) * machine::page_bytes();
}

void read_quick_health(InHook hook, const CgroupDirectories& directories, Health& health,
                       int process) noexcept {
  read_size(health, process);
  std::uint64_t used = 0;
  const bool limited = usage_of_killing_limit(health).limit_bytes != 0;
  if (limited && read_cgroup_usage(hook, directories, used)) set(health.cgroup_used_bytes, used);
  rlimit64 limit{};
  if (system::call(SYS_prlimit64, process, RLIMIT_AS, nullptr, &limit) == 0)
    set(health.rlimit_as_bytes, limit.rlim_cur == RLIM64_INFINITY ? kUnlimited : limit.rlim_cur);
}

StallCounters read_slow_health(InHook hook, const CgroupDirectories& directories, Health& health,
                               int process) noexcept {
  read_swap(health, process);
  read_available_memory(health);
  read_system_kills(health);
  std::uint64_t kills = 0;
  if (read_cgroup_kills(hook, directories, kills)) set(health.cgroup_oom_kills, kills);
  if (directories.v1 || directories.own[0] == '\0' ||
      !read_pressure(directories.own, "/memory.pressure", health))
    read_pressure(system::g_roots.proc, "/pressure/memory", health);
  const StallCounters stalls = read_stall_counters(hook, directories, process);
  if (stalls.major_faults != 0) set(health.major_faults, stalls.major_faults);
  return stalls;
}

MachinePressure pressure_of(const Health& health) noexcept {
  return {health.pressure_some.load(std::memory_order_relaxed),
          health.pressure_full.load(std::memory_order_relaxed)};
}

LimitUsage usage_of_killing_limit(const Health& health) noexcept {
  const std::uint64_t limit = get(health.cgroup_limit_bytes);
  if (limit == 0 || limit == kUnlimited) return {};
  return {LimitKind::cgroup, get(health.cgroup_used_bytes), not_resident(health), limit};
}

LimitUsage usage_of_device_limit(const session::Device& device) noexcept {
  return {LimitKind::device, device.counted_bytes(), 0, device.limit_bytes};
}

LimitUsage usage_of_device_memory(const session::Device& device) noexcept {
  const std::uint64_t total = get(device.total_bytes), free_bytes = get(device.free_bytes);
  return {LimitKind::device, total > free_bytes ? total - free_bytes : 0, 0, total};
}

LimitUsage usage_of_failing_limit(const Health& health, std::uint64_t soft_limit_bytes) noexcept {
  LimitUsage nearest;
  if (soft_limit_bytes != 0)
    nearest = {LimitKind::soft, get(health.live_bytes), 0, soft_limit_bytes};
  const std::uint64_t limit = get(health.rlimit_as_bytes);
  const LimitUsage space{LimitKind::rlimit_as, get(health.vm_bytes), 0,
                         limit == kUnlimited ? 0 : limit};
  return space.percent() > nearest.percent() ? space : nearest;
}

}  // namespace oomrec::limit

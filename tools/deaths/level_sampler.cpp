#include "tools/deaths/level_sampler.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "common/limits/health.h"
#include "common/system/files.h"
#include "common/system/text.h"
#include "tools/deaths/counters.h"

namespace oomrec::tools::deaths {
namespace {

std::uint64_t bounded(std::uint64_t limit) { return limit == session::kUnlimited ? 0 : limit; }
std::uint64_t or_zero(std::optional<std::uint64_t> number) { return number.value_or(0); }

// Of a process that has waited for no child: else it may be a child's. 0: not known to be its own.
// Until a child executes its program it has the memory of its parent, which counts, too.
std::uint64_t own_peak_bytes(const rusage& used) {
  rusage ours{};
  getrusage(RUSAGE_SELF, &ours);
  return used.ru_maxrss > ours.ru_maxrss ? static_cast<std::uint64_t>(used.ru_maxrss) * 1024 : 0;
}

}  // namespace

std::uint64_t resident_peak_bytes(pid_t process) {
  const std::string path = fmt::format("{}/{}/status", system::g_roots.proc, process);
  char text[4096];
  if (system::read_file(path.c_str(), text, sizeof text) <= 0) return 0;
  return system::number_in(system::field(text, "VmHWM:")) * 1024;
}

// The cgroup is found at each sample: the process may have been moved, or its limit been set.
void LevelSampler::sample(pid_t process) {
  const InHook outside = OutsideHooks::in_hook();
  limit::Ceilings seen;
  limit::CgroupDirectories found{};
  limit::read_cgroup(outside, seen, &found, process);
  session::Health health{};
  health.cgroup_limit_bytes = bounded(seen.cgroup_limit_bytes);
  limit::read_quick_health(outside, found, health, process);
  // It is about to end, or not running yet. Version 1 says of a zombie that it is in the root.
  if (health.rss_bytes == 0) return;
  const bool is_another = std::string_view{found.own} != cgroup_.own;
  if (is_another) kills_at_first_ = oom_kills_in(found.own);
  kills_before_ = is_another ? std::nullopt : kills_at_first_;
  cgroup_ = found;
  levels_.cgroup_limit_bytes = health.cgroup_limit_bytes;
  limit::read_available_memory(health);
  const limit::StallCounters counters = limit::read_stall_counters(outside, cgroup_, process);
  std::copy_backward(counters_.begin(), counters_.end() - 1, counters_.end());
  counters_.front() = counters;
  levels_.realtime_ns = system::realtime_ns();
  levels_.resident_bytes = health.rss_bytes;
  levels_.resident_peak_bytes = std::max(
      {levels_.resident_peak_bytes, levels_.resident_bytes, deaths::resident_peak_bytes(process)});
  levels_.major_faults = counters.major_faults;
  levels_.cgroup_used_bytes = health.cgroup_used_bytes;
  levels_.available_bytes = health.available_bytes;
  levels_.limit_hits_before = or_zero(limit_hits_in(cgroup_.limiting));
}

session::Stalls LevelSampler::stalls() const {
  const auto oldest = std::find_if(counters_.rbegin(), counters_.rend(),
                                   [](const auto& counters) { return counters.time_ns != 0; });
  return oldest == counters_.rend() ? session::Stalls{}
                                    : limit::stalls_between(*oldest, counters_.front());
}

session::EndLevels LevelSampler::at_end(const rusage* used) const {
  session::EndLevels levels = levels_;
  std::uint64_t limit = 0;
  if (limit::read_cgroup_limit(OutsideHooks::in_hook(), cgroup_, limit))
    levels.cgroup_limit_bytes = bounded(limit);
  if (used != nullptr && counters_.front().children_faults == 0)
    levels.resident_peak_bytes = std::max(levels.resident_peak_bytes, own_peak_bytes(*used));
  if (levels.realtime_ns == 0) return levels;
  if (used != nullptr) {
    levels.major_faults =
        std::max<std::uint64_t>(levels.major_faults, static_cast<std::uint64_t>(used->ru_majflt));
  }
  levels.stalls = stalls();
  levels.cgroup_peak_bytes = or_zero(peak_usage_in(cgroup_.limiting));
  const auto hits = limit_hits_in(cgroup_.limiting);
  levels.limit_hits_after = hits.value_or(levels.limit_hits_before);
  return levels;
}

}  // namespace oomrec::tools::deaths

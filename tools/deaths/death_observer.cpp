#include "tools/deaths/death_observer.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "common/limits/health.h"
#include "common/system/files.h"
#include "tools/base/proc.h"
#include "tools/deaths/counters.h"

namespace oomrec::tools::deaths {
namespace {

constexpr std::uint64_t kRecentNs = 1'000'000'000;

bool is_recent(std::uint64_t then_ns, std::uint64_t now_ns) {
  return then_ns != 0 && now_ns - then_ns <= kRecentNs;
}

}  // namespace

DeathObserver::DeathObserver(KernelLogFile kernel_log) {
  observation_.kernel_log = std::move(kernel_log);
  observation_.cgroup = own_cgroup();
  sample();
  set_initial_counts();
}

void DeathObserver::set_initial_counts() {
  observation_.kills_before = cgroup_.kills;
  observation_.parent_kills_before = oom_kills_below(observation_.cgroup.directory.parent_path());
  observation_.system_kills_before = system_.kills;
}

bool DeathObserver::Counter::update(std::optional<std::uint64_t> now,
                                    std::uint64_t last_sample_ns) {
  const bool rose = kills && now && *now > *kills;
  if (rose) rose_after_ns = last_sample_ns;
  if (now) kills = now;
  return rose;
}

bool DeathObserver::update() {
  const bool rose = cgroup_.update(oom_kills_in(observation_.cgroup.directory), last_sample_ns_);
  system_.update(system_oom_kills(), last_sample_ns_);
  earlier_[1] = std::exchange(earlier_[0], std::move(processes_));
  earlier_samples_ns_[1] = std::exchange(earlier_samples_ns_[0], last_sample_ns_);
  processes_ = processes_in(observation_.cgroup.directory);
  if (processes_ && helper_ != 0) std::erase(*processes_, helper_);
  const auto is_other = [&](pid_t pid) { return pid != program_ && pid != getpid(); };
  if (!processes_ || std::ranges::any_of(*processes_, is_other)) alone_ = false;
  last_sample_ns_ = system::monotonic_ns();
  return rose;
}

// A killed process takes some time to end, more if it held more memory. A sample may therefore see
// the counter rise before the process has ended. If the process still runs at the next sample, it
// was not the one killed.
void DeathObserver::sample() {
  if (rose_at_last_) alone_ = false;
  rose_at_last_ = update();
  if (program_ != 0) levels_.sample(program_);
  follow_program();
  if (task_) task_();
}

void DeathObserver::follow_program() {
  const MemoryCgroup cgroup = levels_.cgroup();
  if (cgroup.directory.empty() || cgroup.directory == observation_.cgroup.directory) return;
  watch(cgroup);
  was_moved_ = true;
}

void DeathObserver::signal_forwarded(int signal, pid_t sender) {
  forwarded_signal_ = signal;
  observation_.sender = sender;
}

void DeathObserver::reaped_other() { last_reaped_ns_ = system::monotonic_ns(); }

void DeathObserver::watch(const MemoryCgroup& cgroup) {
  if (cgroup.directory.empty() || cgroup.directory == observation_.cgroup.directory) return;
  observation_.cgroup = cgroup;
  cgroup_ = {};
  rose_at_last_ = false;
  alone_ = true;
  update();
  earlier_ = {};
  set_initial_counts();
}

// The kernel counts a kill a moment before the process has ended, which takes longer the more
// memory it held: the counter may have risen at the sample before the one that found it dead.
DeathObservation DeathObserver::of_other(pid_t process) const {
  DeathObservation observed;
  observed.kernel_log = observation_.kernel_log;
  observed.cgroup = observation_.cgroup;
  observed.kills_before = observation_.kills_before;
  observed.system_kills_before = observation_.system_kills_before;
  if (!processes_ || !earlier_[0]) return observed;
  const std::uint64_t rose_after_ns = (cgroup_.kills ? cgroup_ : system_).rose_after_ns;
  observed.counter_rose =
      rose_after_ns != 0 &&
      rose_after_ns >= (earlier_[1] ? earlier_samples_ns_[1] : earlier_samples_ns_[0]);
  const auto is_another_gone = [&](pid_t pid) {
    return pid != process && !std::ranges::binary_search(*processes_, pid);
  };
  for (const auto& earlier : earlier_)
    if (earlier) observed.others_died |= std::ranges::any_of(*earlier, is_another_gone);
  return observed;
}

DeathObservation DeathObserver::ended(int wait_status) {
  update();
  const auto& before = earlier_[0];
  const std::uint64_t now = last_sample_ns_;
  const auto is_gone = [&](pid_t pid) {
    return pid != program_ && !std::ranges::binary_search(*processes_, pid);
  };
  observation_.wait_status = wait_status;
  if (!WIFSIGNALED(wait_status) || WTERMSIG(wait_status) != forwarded_signal_)
    observation_.sender = 0;
  observation_.levels = levels_.at_end(used_ ? &*used_ : nullptr);
  // It may have been dying already when its new cgroup was read first.
  const bool has_risen = cgroup_.kills != observation_.kills_before;
  if (was_moved_ && !has_risen && !levels_.kills_before()) observation_.kills_before.reset();
  observation_.was_there = !levels_.cgroup().directory.empty();
  observation_.pressure = pressure_of(observation_.cgroup.directory);
  if (!before || !processes_) return observation_;  // the other processes are unknown
  observation_.counter_rose = is_recent((cgroup_.kills ? cgroup_ : system_).rose_after_ns, now);
  observation_.others_died =
      is_recent(last_reaped_ns_, now) || std::ranges::any_of(*before, is_gone);
  observation_.was_alone = alone_;
  return observation_;
}

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
  return status_bytes(process, "VmHWM", system::g_roots.proc);
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

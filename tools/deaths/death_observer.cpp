#include "tools/deaths/death_observer.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "common/system/files.h"

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
  if (!processes_ || std::any_of(processes_->begin(), processes_->end(), is_other)) alone_ = false;
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
    return pid != process && !std::binary_search(processes_->begin(), processes_->end(), pid);
  };
  for (const auto& earlier : earlier_)
    if (earlier)
      observed.others_died |= std::any_of(earlier->begin(), earlier->end(), is_another_gone);
  return observed;
}

DeathObservation DeathObserver::ended(int wait_status) {
  update();
  const auto& before = earlier_[0];
  const std::uint64_t now = last_sample_ns_;
  const auto is_gone = [&](pid_t pid) {
    return pid != program_ && !std::binary_search(processes_->begin(), processes_->end(), pid);
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
      is_recent(last_reaped_ns_, now) || std::any_of(before->begin(), before->end(), is_gone);
  observation_.was_alone = alone_;
  return observation_;
}

}  // namespace oomrec::tools::deaths

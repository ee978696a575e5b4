#include "tools/deaths/death_observer.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

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
  processes_ = processes_in(observation_.cgroup.directory);
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
  if (task_) task_();
}

void DeathObserver::signal_forwarded(int signal, pid_t sender) {
  forwarded_signal_ = signal;
  observation_.sender = sender;
}

void DeathObserver::reaped_other() { last_reaped_ns_ = system::monotonic_ns(); }

DeathObservation DeathObserver::ended(int wait_status) {
  const auto before = processes_;
  update();
  const std::uint64_t now = last_sample_ns_;
  const auto is_gone = [&](pid_t pid) {
    return pid != program_ && !std::binary_search(processes_->begin(), processes_->end(), pid);
  };
  observation_.wait_status = wait_status;
  if (!WIFSIGNALED(wait_status) || WTERMSIG(wait_status) != forwarded_signal_)
    observation_.sender = 0;
  observation_.levels = levels_.at_end(used_ ? &*used_ : nullptr);
  observation_.pressure = pressure_of(observation_.cgroup.directory);
  if (!before || !processes_) return observation_;  // the other processes are unknown
  observation_.counter_rose = is_recent((cgroup_.kills ? cgroup_ : system_).rose_after_ns, now);
  observation_.others_died =
      is_recent(last_reaped_ns_, now) || std::any_of(before->begin(), before->end(), is_gone);
  observation_.was_alone = alone_;
  return observation_;
}

}  // namespace oomrec::tools::deaths

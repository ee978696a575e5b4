#include "tools/deaths/watch.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "common/system/files.h"

namespace oomrec::tools::deaths {
namespace {

constexpr std::uint64_t kAtOnceNs = 1'000'000'000;

bool is_recent(std::uint64_t then_ns, std::uint64_t now_ns) {
  return then_ns != 0 && now_ns - then_ns <= kAtOnceNs;
}

}  // namespace

Watch::Watch() {
  watched_.cgroup = own_cgroup();
  look();
  watched_.kills_before = cgroup_.kills;
  watched_.parent_kills_before = oom_kills_below(watched_.cgroup.directory.parent_path());
  watched_.system_kills_before = system_.kills;
}

bool Watch::Counter::update(std::optional<std::uint64_t> now, std::uint64_t last_look_ns) {
  const bool rose = kills && now && *now > *kills;
  if (rose) rose_after_ns = last_look_ns;
  if (now) kills = now;
  return rose;
}

bool Watch::rose_at_look() {
  const bool rose = cgroup_.update(oom_kills_in(watched_.cgroup.directory), last_look_ns_);
  system_.update(system_oom_kills(), last_look_ns_);
  processes_ = processes_in(watched_.cgroup.directory);
  const auto is_other = [&](pid_t pid) { return pid != program_ && pid != getpid(); };
  if (!processes_ || std::any_of(processes_->begin(), processes_->end(), is_other)) alone_ = false;
  last_look_ns_ = system::monotonic_ns();
  return rose;
}

// Who is killed takes a while to end, the longer the more it held: a look may see the counter of a
// kill that the next one would see the end of. Who ran on until then was not the one.
void Watch::look() {
  if (rose_at_last_) alone_ = false;
  rose_at_last_ = rose_at_look();
  if (also_) also_();
}

void Watch::passed_on(int signal, pid_t sender) {
  passed_signal_ = signal;
  watched_.sender = sender;
}

void Watch::reaped_another() { last_reaped_ns_ = system::monotonic_ns(); }

Watched Watch::ended(int wait_status) {
  const auto before = processes_;
  rose_at_look();
  const std::uint64_t now = last_look_ns_;
  const auto is_gone = [&](pid_t pid) {
    return pid != program_ && !std::binary_search(processes_->begin(), processes_->end(), pid);
  };
  watched_.wait_status = wait_status;
  if (!WIFSIGNALED(wait_status) || WTERMSIG(wait_status) != passed_signal_) watched_.sender = 0;
  watched_.pressure = pressure_of(watched_.cgroup.directory);
  if (!before || !processes_) return watched_;  // who else was there is not known
  watched_.at_once = is_recent((cgroup_.kills ? cgroup_ : system_).rose_after_ns, now);
  watched_.others =
      is_recent(last_reaped_ns_, now) || std::any_of(before->begin(), before->end(), is_gone);
  watched_.alone = alone_;
  return watched_;
}

}  // namespace oomrec::tools::deaths

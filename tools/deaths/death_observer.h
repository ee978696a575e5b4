// Observes what only a launcher can see of its program's death: when a kill counter rose, and which
// other processes were in the cgroup.
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/limits/ceilings.h"
#include "common/limits/stalls.h"
#include "common/session/evidence.h"
#include "tools/deaths/counters.h"
#include "tools/deaths/kernel_log.h"

namespace oomrec::tools::deaths {

// Samples the levels of a running process from outside: how near its cgroup's limit it is, and how
// much it waits for memory. Its own last check may be old when it dies: programs touch memory long
// after they allocate it.

// VmHWM of a running process, the highest that the kernel has seen; 0: unknown.
std::uint64_t resident_peak_bytes(pid_t process);

class LevelSampler {
 public:
  // The caller does so about twice a second while the process runs; takes about 50 µs.
  void sample(pid_t process);

  // Of the last sample, with what the kernel still knows after the end. `used`: of wait4(); null:
  // unknown.
  session::EndLevels at_end(const rusage* used) const;

  // Between the last four samples.
  session::Stalls stalls() const;
  std::uint64_t resident_bytes() const { return levels_.resident_bytes; }

  // Where the last sample found the process, whatever its recording says: it may have been moved.
  MemoryCgroup cgroup() const { return {cgroup_.own, cgroup_.named}; }
  // The kernel's kills in it when a sample first found the process there. Empty until a later one
  // has: a kill is counted before its process has ended.
  std::optional<std::uint64_t> kills_before() const { return kills_before_; }

 private:
  limit::CgroupDirectories cgroup_{};
  std::optional<std::uint64_t> kills_at_first_, kills_before_;
  session::EndLevels levels_{};
  std::array<limit::StallCounters, 4> counters_{};  // of the last samples, newest first
};

// What a recorded parent's recording says of the signal by which it ended the process.
struct ParentSignal {
  bool for_memory = false;
  std::string program = {};    // the sender's executable
  std::uint32_t flags = 0;     // of what is known of its reason (session/sender.h)
  bool after_another = false;  // it had lost another child to a signal shortly before
  std::string evidence;        // empty: it sent none
};

// What was observed of a death. Default: nothing.
struct DeathObservation {
  std::optional<int> wait_status;
  std::uint64_t realtime_ns = 0;  // when wait() returned it; 0: just now
  // Of the signal that ended it, if we forwarded it or a recorded parent sent it; 0: unknown.
  pid_t sender = 0;
  MemoryCgroup cgroup;     // that was sampled
  bool was_there = false;  // the last sample found the process in it, whatever its recording says
  std::optional<std::uint64_t> kills_before;         // in it, at the start
  std::optional<std::uint64_t> parent_kills_before;  // in its parent and below
  std::optional<std::uint64_t> system_kills_before;
  bool counter_rose = false;  // within 1 s of the death
  // At every sample, only the program and we were in the cgroup, and the program never survived a
  // rise of the counter.
  bool was_alone = false;
  bool others_died = false;  // other processes of the cgroup or children of ours, within 1 s of it
  Pressure pressure;         // when the death was noticed
  session::EndLevels levels{};     // of the last sample, and what is left at the end
  bool ended_by_launcher = false;  // its launcher ended it after another rank ran out of memory
  ParentSignal parent_signal;
  KernelLogFile kernel_log;
};

// Samples the counters and the cgroup: the caller does so twice a second, and once when the program
// has ended. A sample takes about 50 µs.
class DeathObserver {
 public:
  // Takes the first sample; create it before the program starts.
  explicit DeathObserver(KernelLogFile kernel_log = {});

  // Runs `task` at each sample from now on.
  void at_each_sample(std::function<void()> task) { task_ = std::move(task); }

  void started(pid_t program) { program_ = program; }
  // A child of this process that is no part of the program; 0: none runs.
  void set_helper(pid_t helper) { helper_ = helper; }
  void sample();
  void signal_forwarded(int signal, pid_t sender);
  void reaped_other();
  // The program has ended, and used so much: wait4().
  void reaped(const rusage& used) { used_ = used; }

  DeathObservation ended(int wait_status);

  // The program starts in this cgroup, not in ours: its counters are sampled from now on. A sample
  // follows the program by itself.
  void watch(const MemoryCgroup& cgroup);

  // Of another process, which the latest sample or the one before it found dead.
  DeathObservation of_other(pid_t process) const;

 private:
  bool update();  // returns whether the cgroup's counter rose
  void set_initial_counts();
  void follow_program();

  // A counter, and the sample before its latest rise.
  struct Counter {
    std::optional<std::uint64_t> kills;
    std::uint64_t rose_after_ns = 0;                                              // 0: it never did
    bool update(std::optional<std::uint64_t> now, std::uint64_t last_sample_ns);  // true: it rose
  };

  std::function<void()> task_;
  LevelSampler levels_;
  std::optional<rusage> used_;
  DeathObservation observation_;
  Counter cgroup_, system_;
  std::optional<std::vector<pid_t>> processes_;  // in the cgroup, at the latest sample …
  std::array<std::optional<std::vector<pid_t>>, 2> earlier_;  // … and at those before, newest first
  pid_t program_ = 0;
  pid_t helper_ = 0;
  bool alone_ = true;          // at every sample so far
  bool rose_at_last_ = false;  // the cgroup's counter
  std::uint64_t last_sample_ns_ = 0;
  std::array<std::uint64_t, 2> earlier_samples_ns_{};
  std::uint64_t last_reaped_ns_ = 0;
  int forwarded_signal_ = 0;
  bool was_moved_ = false;  // the program, to the cgroup that is sampled now
};

}  // namespace oomrec::tools::deaths

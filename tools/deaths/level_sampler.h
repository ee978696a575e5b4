// Samples the levels of a running process from outside: how near its cgroup's limit it is, and how
// much it waits for memory. Its own last check may be old when it dies: programs touch memory long
// after they allocate it.
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <array>
#include <cstdint>
#include <optional>

#include "common/limits/ceilings.h"
#include "common/limits/stalls.h"
#include "common/session/evidence.h"
#include "tools/deaths/counters.h"

namespace oomrec::tools::deaths {

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

}  // namespace oomrec::tools::deaths

// What is known of a process' end, in the terms that its verdict is made of. Private to this
// folder.
#pragma once

#include <cstdint>
#include <string_view>

#include "common/session/view.h"

namespace oomrec::verdict {

// Use of something that has a limit. limit 0: not known; kUnlimited: none.
struct Level {
  std::uint64_t used = 0;
  std::uint64_t limit = 0;

  bool bounded() const noexcept { return limit != 0 && limit != session::kUnlimited; }
  bool near() const noexcept { return bounded() && used >= limit - limit / 10; }  // 90 %
  std::uint64_t percent() const noexcept { return limit < 100 ? 100 : used / (limit / 100); }
};

// How near its limits the process was when it last looked.
struct Usage {
  Usage(const session::View&) noexcept;

  bool near() const noexcept {
    return cgroup_soon.near() || soft.near() || machine.near() || machine_soon.near();
  }
  // Known, and not near.
  bool far() const noexcept { return cgroup.limit != 0 && machine.limit != 0 && !near(); }

  std::uint64_t held = 0;        // live, on the host
  std::uint64_t unresident = 0;  // live on the host and not resident: what it may still ask for
  Level cgroup;                  // working set
  Level cgroup_soon;             // with what is not resident yet
  Level soft;                    // live; the soft limit
  Level machine;                 // RAM that is not available
  Level machine_soon;
};

enum class Killer : std::uint8_t { none, cgroup, system };

struct DeathFacts {
  DeathFacts(const session::View&, const session::Death&, std::string_view outcome) noexcept;

  bool has(std::uint32_t flag) const noexcept { return (death.flags & flag) != 0; }
  bool cgroup_rose() const noexcept {
    return has(session::kDeathCgroupCounted) &&
           death.cgroup_oom_kills_after > death.cgroup_oom_kills_before;
  }
  bool system_rose() const noexcept {
    return has(session::kDeathSystemCounted) &&
           death.system_oom_kills_after > death.system_oom_kills_before;
  }

  // The kernel killed it for memory. A counter that rose says only that somebody was killed: it
  // convicts where this process was alone, or was killed at that moment and nobody else died.
  Killer killer() const noexcept;

  // SIGBUS by the kernel, where the file system of its shared memory was full.
  bool shared_memory_full() const noexcept;

  // Of a SIGKILL: not the kernel's for memory.
  bool kernel_ruled_out() const noexcept;

  // The share of time in which some or all tasks waited for memory was high.
  bool pressed() const noexcept { return pressure_full >= 1000 || pressure_some >= 5000; }

  const session::Header& header;
  const session::Death& death;
  bool exited = false;  // by itself
  int signal = 0;       // that ended it; 0: none, or not known
  Usage usage;
  std::uint32_t pressure_some = 0, pressure_full = 0;  // 1/100 %
};

}  // namespace oomrec::verdict

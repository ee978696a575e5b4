// The facts about a process' end on which its verdict depends. Private to this folder.
#pragma once

#include <cstdint>
#include <string_view>

#include "common/session/view.h"

namespace oomrec::verdict {

struct End;

// Usage of a limited resource. limit 0: unknown; kUnlimited: no limit.
struct Level {
  std::uint64_t used = 0;
  std::uint64_t limit = 0;

  bool bounded() const noexcept { return limit != 0 && limit != session::kUnlimited; }
  bool near() const noexcept { return bounded() && used >= limit - limit / 10; }  // 90 %
  std::uint64_t percent() const noexcept { return limit < 100 ? 100 : used / (limit / 100); }
};

// How near its limits the process was at its last check.
struct Usage {
  Usage(const session::View&) noexcept;

  bool near() const noexcept {
    return cgroup_soon.near() || soft.near() || machine.near() || machine_soon.near();
  }
  // Known not to be near.
  bool far() const noexcept { return cgroup.limit != 0 && machine.limit != 0 && !near(); }

  std::uint64_t held = 0;        // live bytes on the host
  std::uint64_t unresident = 0;  // allocated but not resident: it may still become resident
  Level cgroup;                  // working set
  Level cgroup_soon;             // with `unresident` added
  Level soft;                    // live bytes against the soft limit
  Level machine;                 // RAM not available
  Level machine_soon;
};

enum class Killer : std::uint8_t { none, cgroup, system };

struct DeathFacts {
  DeathFacts(const session::View&, const End&, std::string_view outcome) noexcept;

  bool has(std::uint32_t flag) const noexcept { return (death.flags & flag) != 0; }
  bool cgroup_rose() const noexcept {
    return has(session::kDeathCgroupCounted) &&
           death.cgroup_oom_kills_after > death.cgroup_oom_kills_before;
  }
  bool system_rose() const noexcept {
    return has(session::kDeathSystemCounted) &&
           death.system_oom_kills_after > death.system_oom_kills_before;
  }

  // Whether the kernel killed the process for memory. A counter that rose only says that some
  // process was killed. It is proof if this process was alone, or if it was killed at that moment
  // and no other process died.
  Killer killer() const noexcept;

  // SIGBUS from the kernel while the file system of its shared memory was full.
  bool shared_memory_full() const noexcept;

  // For SIGKILL: the kernel did not send it for lack of memory.
  bool kernel_ruled_out() const noexcept;

  // Some or all tasks waited for memory for a large share of the time.
  bool pressed() const noexcept { return pressure_full >= 1000 || pressure_some >= 5000; }

  const session::Header& header;
  const session::Death& death;
  const session::EndLevels& levels;
  const session::CgroupAccount& account;
  bool exited = false;  // by exiting
  int signal = 0;       // that ended it; 0: none or unknown
  Usage usage;
  std::uint32_t pressure_some = 0, pressure_full = 0;  // 1/100 %
};

}  // namespace oomrec::verdict

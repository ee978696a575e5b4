// The facts about a process' end on which its verdict depends. Private to this folder.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "common/limits/stalls.h"
#include "common/session/notable.h"
#include "common/session/view.h"

namespace oomrec::verdict {

struct End;

// Usage of a limited resource. limit 0: unknown; kUnlimited: no limit.
struct Level {
  std::uint64_t used = 0;
  std::uint64_t limit = 0;

  bool bounded() const noexcept { return limit != 0 && limit != session::kUnlimited; }
  bool is_at(unsigned percent) const noexcept {
    return bounded() && used >= limit - limit / 100 * (100 - percent);
  }
  bool near() const noexcept { return is_at(90); }
  std::uint64_t percent() const noexcept { return limit < 100 ? 100 : used / (limit / 100); }
};

// How near the limits that kill the process was, by the newest reading: its own last check, or one
// from outside. Limits count resident and charged memory. What was allocated and never touched is
// no usage, and neither is a soft limit's: that one makes requests fail.
struct Usage {
  Usage(const session::View&, const End&) noexcept;

  bool near() const noexcept { return cgroup.near() || machine.near() || at_limit(); }
  // With what it has allocated since the reading, which may be resident.
  Level grown_cgroup() const noexcept {
    return {cgroup.used + std::min(grown, session::kUnlimited - cgroup.used), cgroup.limit};
  }
  // Near enough, or with the limit reached since, that nothing else is needed to explain a kill.
  bool at_limit() const noexcept {
    return cgroup.is_at(95) || machine.is_at(95) || (hits != 0 && reached.is_at(75));
  }
  // Known to have been far, and not to have grown much since.
  bool far() const noexcept {
    return cgroup.limit != 0 && machine.limit != 0 && !grown_cgroup().is_at(80) &&
           !machine.is_at(80);
  }

  // Live bytes on the host. By a look at its pages, or the kernel's report of the kill, only those
  // in memory or in swap, with what it has written of files.
  std::uint64_t held = 0;
  bool is_in_memory = false;     // all of `held`
  std::uint64_t resident = 0;    // 0: unknown
  std::uint64_t unresident = 0;  // allocated, but not in memory
  std::uint64_t swapped = 0;     // at its last check
  std::uint64_t freed = 0;       // since its own last check, if that is the newest reading …
  std::uint64_t grown = 0;       // … or allocated
  std::uint64_t age_ns = 0;      // of the reading at the end; 0: unknown
  std::uint64_t hits = 0;        // of the cgroup's limit, after the reading
  Level cgroup;                  // working set
  Level reached;                 // the same, or what the process had resident at most
  Level soft;                    // live bytes against the soft limit
  Level machine;                 // RAM not available

 private:
  void read_own(const session::Header&, std::uint64_t live) noexcept;
  void read_look(const session::View&, const session::CgroupAccount&, std::uint64_t live) noexcept;
  void read_outside(const session::Header&, const session::EndLevels&) noexcept;
  void read_account(const session::CgroupAccount& account) noexcept;
  void set_machine(const session::Header&, std::uint64_t available) noexcept;
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
  session::KernelLine kernel_line() const noexcept {
    return static_cast<session::KernelLine>(death.kernel_line_kind);
  }
  // SysRq f: the kernel killed it because someone asked for that, whatever memory was left.
  bool killed_on_request() const noexcept { return kernel_line() == session::KernelLine::sysrq; }
  bool has_kernel_line() const noexcept { return kernel_line() != session::KernelLine::none; }

  // Whether that line is certainly about this process: by its pid, or because its cgroup had no
  // other process.
  bool is_named_by_kernel() const noexcept {
    return has_kernel_line() && (!has(session::kDeathLineByName) || has(session::kDeathAlone));
  }

  // Whether that line has the pid of the recorder's helper: the kernel takes one of the processes
  // that share the memory, and ends them all.
  bool is_helper_named_by_kernel() const noexcept;

  // Whether the kernel killed the process for memory. A counter that rose only says that some
  // process was killed. It is proof if this process was alone, or if it was killed at that moment
  // and no other process died.
  Killer killer() const noexcept;
  // Of a kill that its cgroup counted: for the machine's lack of memory. The kernel counts such a
  // kill in the victim's cgroup as well.
  bool is_counted_for_machine() const noexcept {
    return usage.cgroup.limit == session::kUnlimited ||
           (usage.machine.near() && !usage.cgroup.near());
  }

  // Whether another process sent the signal because of memory, and said so or is known for it.
  bool has_user_killer() const noexcept {
    return user_killer() != session::UserKiller::none && !has_other_reason();
  }
  bool has_other_reason() const noexcept {
    return user_killer() == session::UserKiller::other_reason;
  }
  bool has_informant() const noexcept { return user_killer() == session::UserKiller::informant; }
  session::UserKiller user_killer() const noexcept {
    return static_cast<session::UserKiller>(levels.user_killer);
  }

  // The informant's name.
  std::string_view informant() const noexcept {
    return sender_line().substr(0, sender_line().find(": "));
  }

  // Evidence of who sent it: the daemon's line of a log, or the entry in the parent's recording.
  std::string_view sender_line() const noexcept {
    const std::string_view text{levels.user_killer_line, sizeof levels.user_killer_line};
    return text.substr(0, text.find('\0'));
  }
  bool sent_by_parent() const noexcept {
    return death.sender_pid != 0 && death.sender_pid == header.parent_pid;
  }

  // Its parent sent it, and nothing shows why; perhaps at a limit of the parent's own.
  bool has_unknown_reason() const noexcept {
    return sent_by_parent() &&
           (levels.flags & (session::kSenderReasonUnknown | session::kSenderPerhapsForMemory)) != 0;
  }
  bool was_stopped() const noexcept {
    return sent_by_parent() && (levels.flags & session::kSenderStops) != 0;
  }
  bool is_perhaps_for_memory() const noexcept {
    return sent_by_parent() && (levels.flags & session::kSenderPerhapsForMemory) != 0;
  }

  // SIGBUS from the kernel while the file system of its shared memory was full.
  bool shared_memory_full() const noexcept;

  // For SIGKILL: the kernel did not send it for lack of memory.
  bool kernel_ruled_out() const noexcept;

  // Near a limit, or likely to have got there: its cgroup was full, since the kernel killed some
  // process there, and this one had grown that far.
  bool near_limit() const noexcept {
    return usage.near() || (cgroup_rose() && usage.grown_cgroup().near());
  }

  // The process itself waited for memory.
  bool stalled() const noexcept { return limit::is_stalled(stalls, pressure); }

  // Memory cannot have been the reason. It can near a soft limit that has refused requests: who
  // ended the process may have done so because of that.
  bool memory_ruled_out() const noexcept {
    const bool was_refused = usage.soft.is_at(80) && header.failures_total != 0;
    return usage.far() && !was_refused && !stalled() && kernel_ruled_out();
  }

  const session::Header& header;
  const session::Death& death;
  const session::EndLevels& levels;
  const session::CgroupAccount& account;
  bool exited = false;  // by exiting
  int signal = 0;       // that ended it; 0: none or unknown
  Usage usage;
  session::Stalls stalls{};           // the newer of the process' own and those from outside
  limit::MachinePressure pressure{};  // the higher of both readings
};

}  // namespace oomrec::verdict

// Finds a kill by a user-space OOM killer in its log: earlyoom, systemd-oomd, Meta's oomd and
// Kubernetes' kubelet send the signals themselves, before the kernel does, and log whom they end
// and why.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/session/layout.h"
#include "tools/deaths/kernel_kills.h"
#include "tools/deaths/kernel_log.h"

namespace oomrec::tools::deaths {

struct UserKill {
  session::UserKiller killer = session::UserKiller::none;
  std::uint64_t realtime_ns = 0;
  std::string line;  // with the daemon's name
};

// The latest kill of this process: earlyoom names pid and command, systemd-oomd the cgroup or an
// ancestor, a kubelet the pod, after it has reclaimed memory and no other resource. Formats:
// earlyoom 1.0 to 1.8 (kill.c), systemd 247 and later (oomd-manager.c, unit.c), oomd 0.4 and later
// (BaseKillPlugin.cpp), Kubernetes 1.6 and later (eviction_manager.go).
std::optional<UserKill> user_kill_of(const std::vector<LogRecord>& log, const KillQuery& query);

// What daemons have logged since that moment: /dev/kmsg, syslog's files, the journal. With a named
// `file`, or OOMREC_KERNEL_LOG, only what that file contains.
std::vector<LogRecord> read_daemon_log(const LogClock& clock, std::uint64_t from_realtime_ns,
                                       const KernelLogFile& file = {});

}  // namespace oomrec::tools::deaths

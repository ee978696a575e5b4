// Finds the line with which the kernel logged that a fault ended a process: a signal that nobody
// may have waited for.
//
// x86 logs every fault of a user's process that has no handler, unless debug.exception-trace is 0
// or too many came at once. Signals that a process sends (abort(), kill) are not logged.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tools/deaths/kernel_kills.h"
#include "tools/deaths/kernel_log.h"

namespace oomrec::tools::deaths {

struct KernelFault {
  int signal = 0;
  std::uint64_t realtime_ns = 0;
  std::string line;
};

// The fault that ended this process. In another pid namespace than the log's it is not found.
std::optional<KernelFault> fault_of(const KernelLog& log, const KillQuery& query);

}  // namespace oomrec::tools::deaths

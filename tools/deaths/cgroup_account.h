// The account of a whole cgroup, or of the machine, at a kill: whose memory, and of which kind.
#pragma once

#include <cstdint>
#include <filesystem>
#include <set>

#include "common/session/view.h"
#include "tools/deaths/oom_report.h"

namespace oomrec::tools::deaths {

// The parts add up to the report's usage. `own`: the pid of the process that died, in the report;
// `recorded`: the pids that have a recording.
session::CgroupAccount account_of(const OomReport& report, std::uint64_t own,
                                  const std::set<std::uint64_t>& recorded);

// The same as a report, from the files of a cgroup and of its processes. Usage 0: not readable.
OomReport report_of_cgroup(const std::filesystem::path& cgroup);

// After the death: what is still in the cgroup that limits the process, and what the process had by
// the kernel's line about its kill; null: by its own last reading. Usage 0: there is no such
// cgroup, or it has no limit.
session::CgroupAccount remaining_account(const session::View& view, const ResidentMemory* at_kill);

}  // namespace oomrec::tools::deaths

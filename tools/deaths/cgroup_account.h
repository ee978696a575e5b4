// The account of a whole cgroup, or of the machine, at a kill: whose memory, and of which kind.
#pragma once

#include <cstdint>
#include <filesystem>
#include <set>

#include "common/session/view.h"
#include "tools/deaths/oom_report.h"

namespace oomrec::tools::deaths {

// The process that died, by its pids in a report.
struct OwnProcess {
  OwnProcess(std::uint64_t own_pid, std::uint64_t own_helper = 0, bool recorded = true)
      : pid(own_pid), helper(own_helper), is_recorded(recorded) {}
  bool is(std::uint64_t other) const { return other == pid || (helper != 0 && other == helper); }

  std::uint64_t pid;
  std::uint64_t helper;  // of its recorder, which has the same memory; 0: none
  bool is_recorded;
};

// The parts add up to the report's usage. `recorded`: the pids that have a recording.
session::CgroupAccount account_of(const OomReport& report, const OwnProcess& own,
                                  const std::set<std::uint64_t>& recorded);

// `recorded` and those of the report that the recorder is in. Only for pids of our namespace.
std::set<std::uint64_t> with_recorder(const OomReport& report, std::set<std::uint64_t> recorded);

// The same as a report, from the files of a cgroup and of its processes. Usage 0: not readable.
OomReport report_of_cgroup(const std::filesystem::path& cgroup);

// The pid of its recorder's helper; 0: it has had none.
std::uint64_t helper_of(const session::View& view);

// After the death in this cgroup: what is still in the one that limits the process, and what the
// process had by the kernel's line about its kill; null: by its own last reading. Usage 0: there is
// no such cgroup, or it has no limit.
session::CgroupAccount remaining_account(const session::View& view,
                                         const std::filesystem::path& cgroup,
                                         const ResidentMemory* at_kill);

}  // namespace oomrec::tools::deaths

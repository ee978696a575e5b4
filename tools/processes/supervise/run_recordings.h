// Which recordings and bundles are those of a run: of its program and the program's descendants.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <set>
#include <vector>

#include "common/options/options.h"
#include "tools/bundles/recover/sessions.h"
#include "tools/bundles/store/bundles.h"
#include "tools/processes/launch/process.h"
#include "tools/processes/supervise/program_facts.h"

namespace oomrec::tools::processes {

// Directories of the program's recordings and bundles. `searched`: those that reading commands
// search for bundles in this environment.
struct Directories {
  std::vector<std::filesystem::path> dumps, searched;
  std::filesystem::path named_session;
};
Directories directories_for(const Options& options);

// Not of an earlier process: a container's first processes have the same ids at each start.
std::vector<bundles::BundleSummary> bundles_since_start(
    const std::vector<std::filesystem::path>& directories, const ProgramFacts& program);
std::vector<bundles::Session> sessions_since_start(const Directories& directories,
                                                   const ProgramFacts& program);

// `Process`: anything with its pid and the time of its start.
template <class Process>
bool is_program(const Process& process, const ProgramFacts& program) {
  return static_cast<std::uint64_t>(process.pid) == static_cast<std::uint64_t>(program.pid) &&
         (process.start_ticks == program.start_ticks || program.start_ticks == 0);
}

// Not so of one without a readable recording, as GPU Memory Profiler writes.
bool is_bundle_of(const bundles::BundleSummary& bundle, const ProgramFacts& program);

// A bundle that the program has written itself. Empty if there is none.
std::filesystem::path own_bundle(const std::vector<bundles::BundleSummary>& bundles,
                                 const ProgramFacts& program);

// The program and its descendants: by the chain of their parents, and by the name of the run in
// these settings, as a process in the chain that has ended well has left no recording.
std::set<pid_t> process_tree_of(pid_t program, const std::vector<bundles::Session>& sessions,
                                const Settings& settings);

// Those with a session or a bundle. A session does not count if it is only that of a program that
// became another one by exec. Of the program itself exactly, as its death is reported in any case.
std::set<pid_t> recorded_processes(const std::vector<bundles::Session>& sessions,
                                   const std::vector<bundles::BundleSummary>& bundles,
                                   const ProgramFacts& program);

}  // namespace oomrec::tools::processes

// Opens what a command's argument names: the recording of one process, or a job's ranks as one.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "tools/bundles/store/source.h"
#include "tools/recording/live/processes.h"

namespace oomrec::tools::bundles {

// `argument`: what open_recorded() takes, or a directory with the bundles of a job's ranks. Empty:
// recovers the orphans of the dump directory, and opens the bundle that
// tells the cause of its newest incident. `cache`: see Locations.
// Throws Error: for another directory of bundles, or the pid of a process that has ended, one that
// names the newest bundle.
Source open_source(const std::string& argument,
                   std::shared_ptr<const recording::CacheDirectory> cache = nullptr);

// Finds the running process that a command's argument names, or the bundle of one that has ended.

// As recording::find_live_process(), with the errors of require_not_ended().
recording::LiveProcess find_live_process(const std::string& argument);

// If `argument` is the pid of a process that has ended, and the dump directories have a bundle of
// it, throws Error that names the newest one. It is not opened: another process may have had that
// pid before. Recovers the orphans of these directories first.
void require_not_ended(const std::string& argument);

// Opens the bundles of the other processes in a bundle's process tree: workers, ranks.

inline constexpr std::size_t kMostProcesses = 64;

// Calls visit(index, source) for each of `processes` that has a bundle in the same directory. Skips
// the source's own, deleted and damaged bundles, and all processes after the first kMostProcesses.
void for_each_other_process(const Source& source, const std::vector<TreeProcess>& processes,
                            const std::function<void(std::size_t, const Source&)>& visit);

}  // namespace oomrec::tools::bundles

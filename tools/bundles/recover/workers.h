// Finds the worker whose death ended its parent, in the worker's own bundle.
#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "tools/bundles/recover/dead_process.h"

namespace oomrec::tools::bundles {

// The first worker that died for lack of memory, among those that `parent` waited for within
// kFollowsWithinNs before its own end. A worker is a child that runs the same program. Empty for a
// parent that exited with status 0 or itself died of memory. Searches `dump_directories` and the
// parent's own. Symbolizes the worker's stacks, so it takes as long as `oomrec show`.
std::optional<session::ChildDeath> fatal_worker(
    const DeadProcess& parent, std::vector<std::filesystem::path> dump_directories);

}  // namespace oomrec::tools::bundles

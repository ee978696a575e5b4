// Why a process ended that had lost a worker: what the worker's own bundle says of its death.
#pragma once

#include <filesystem>
#include <optional>

#include "tools/deaths/ending.h"
#include "tools/recording/reading/recording.h"

namespace oomrec::tools::bundles {

// Of the workers (children that run the same program) that `parent` waited for a short while before
// its end, the first that died for lack of memory. Nothing for a parent that lives, ended well, or
// was itself killed for its memory. `sessions`, `bundles`: where its recording is and where its
// bundles go. Names the worker's stacks: as long as `oomrec show` takes.
std::optional<session::ChildDeath> fatal_worker(const recording::Recording& parent,
                                                const deaths::Ending& ending,
                                                const std::filesystem::path& sessions,
                                                const std::filesystem::path& bundles);

}  // namespace oomrec::tools::bundles

// The signal by which a recorded parent ended its child, and whether the child's memory was the
// reason: supervisors such as Dask's nanny watch their workers, and end those that take too much.
#pragma once

#include <filesystem>
#include <vector>

#include "tools/deaths/death_observer.h"
#include "tools/recording/reading/recording.h"

namespace oomrec::tools::bundles {

// `observed`; with sender, reason and evidence if SIGTERM or SIGKILL ended the child and the
// recording of its parent, in these directories, has this signal. Memory is the reason if
// * the child had reached 95 % of a limit among the parent's arguments (--memory-limit), or
// * the parent's code that sent the signal does so for memory alone.
// It may be if the child was growing, and the parent had ended another from the same line at the
// same size before it started this one.
deaths::DeathObservation with_signal_from_parent(
    deaths::DeathObservation observed, const session::Header& child,
    const std::vector<std::filesystem::path>& directories, bool was_growing = false);

}  // namespace oomrec::tools::bundles

// Collects evidence of a death from outside the recording: the wait status, the kernel's log and
// counters. common/verdict judges it.
#pragma once

#include <cstdint>
#include <set>

#include "common/session/view.h"
#include "tools/deaths/death_observer.h"

namespace oomrec::tools::deaths {

// Whether the machine has not booted since the process started.
bool is_this_boot(const session::Header& header);

// For a process that is gone and did not close its session. Reads the kernel's log, which takes
// tens of milliseconds.
session::EndEvidence end_evidence_of(const session::View& view, const DeathObservation& observed);

// Which processes have a recording.

// The pids in the names of the session files, in all directories in which this process' relatives
// and other programs of this user may have theirs. Its own is among them, unless it was not
// recorded.
std::set<std::uint64_t> recorded_pids(const session::View& view);

// Whether the recorder is in this process. A forked child has a recording of its own only once it
// has allocated a MiB: an idle worker of a server has none.
bool has_recorder(std::uint64_t pid);

}  // namespace oomrec::tools::deaths

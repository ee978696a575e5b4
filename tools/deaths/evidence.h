// Collects evidence of a death from outside the recording: the wait status, the kernel's log and
// counters. common/verdict judges it.
#pragma once

#include "common/session/view.h"
#include "tools/deaths/death_observer.h"

namespace oomrec::tools::deaths {

// Whether the machine has not booted since the process started.
bool is_this_boot(const session::Header& header);

// For a process that is gone and did not close its session. Reads the kernel's log, which takes
// tens of milliseconds.
session::EndEvidence end_evidence_of(const session::View& view, const DeathObservation& observed);

}  // namespace oomrec::tools::deaths

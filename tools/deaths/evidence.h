// What can be found out about the death of a process besides its recording: by whoever waited for
// it, from the kernel's log and from its counters. The verdict on it is recorder/bundle's.
#pragma once

#include "common/session/view.h"
#include "tools/deaths/watch.h"

namespace oomrec::tools::deaths {

// For a process that is gone and did not end its session itself. Reads the kernel's log: tens of
// milliseconds.
session::Death death_of(const session::View& view, const Watched& watched);

}  // namespace oomrec::tools::deaths

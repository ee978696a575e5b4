// Which processes have a recording.
#pragma once

#include <cstdint>
#include <set>

#include "common/session/view.h"

namespace oomrec::tools::deaths {

// The pids in the names of the session files, in all directories in which this process' relatives
// and other programs of this user may have theirs. Its own is among them.
std::set<std::uint64_t> recorded_pids(const session::View& view);

}  // namespace oomrec::tools::deaths

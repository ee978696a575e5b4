// Which processes have a recording.
#pragma once

#include <cstdint>
#include <set>

#include "common/session/view.h"

namespace oomrec::tools::deaths {

// The pids in the names of the session files, in all directories in which this process' relatives
// and other programs of this user may have theirs. Its own is among them, unless it was not
// recorded.
std::set<std::uint64_t> recorded_pids(const session::View& view);

// Whether the recorder is in this process. A forked child has a recording of its own only once it
// has allocated a MiB: an idle worker of a server has none.
bool has_recorder(std::uint64_t pid);

}  // namespace oomrec::tools::deaths

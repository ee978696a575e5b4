// The health of a recorded process, read from outside: its own last sample may be old.
#pragma once

#include <filesystem>
#include <memory>

#include "common/limits/ceilings.h"
#include "common/session/view.h"

namespace oomrec::tools::deaths {

// The health that the process itself last sampled.
std::unique_ptr<session::Health> recorded_health(const session::View& view);

// The same, updated with what can be read now. Only for a process of our pid namespace.
std::unique_ptr<session::Health> current_health(const session::View& view);

// The directory of the process' cgroup. Empty if it is unknown, or not below the root of the
// cgroups: a recording may name any directory, and where the kernel does not make the files, one
// may be a FIFO.
std::filesystem::path recorded_cgroup(const session::View& view);

// The cgroup, and the one that has its limit: the same or an ancestor. Empty paths if they are not
// visible here.
limit::CgroupDirectories limiting_cgroup(const std::filesystem::path& cgroup);

}  // namespace oomrec::tools::deaths

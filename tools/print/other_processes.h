// The other processes in a bundle: its process tree, and the largest others of its cgroup.
#pragma once

#include <string>

#include "common/verdict/verdict.h"
#include "tools/base/json.h"
#include "tools/bundles/store/source.h"

namespace oomrec::tools::print {

// {"processes": […], "others": […], "left_out": N}: processes.json, updated with the outcomes and
// bundles that members of the tree got later. Rows are as in docs/bundle-format.md. The arrays are
// null if the bundle has no processes.json.
Json related_processes(const bundles::Source&);

// Lines of the process tree: the process itself, then the others by live bytes. Empty if it is
// alone. `full`: every process.
std::string group_text(const Json& related, bool full);

// Lines of the cgroup's other processes. Empty unless they may be a cause: the cgroup has a limit,
// or the process died of memory.
std::string others_text(const Json& related, const bundles::Source&, const verdict::Verdict&);

}  // namespace oomrec::tools::print

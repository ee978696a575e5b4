// Opens what a command's argument names: the recording of one process, or a job's ranks as one.
#pragma once

#include <memory>
#include <string>

#include "tools/bundles/store/source.h"

namespace oomrec::tools::bundles {

// `argument`: what open_recorded() takes, or a directory with the bundles of a job's ranks. Empty:
// recovers the orphans of the dump directory, and opens the bundle that
// tells the cause of its newest incident. `cache`: see Locations.
// Throws Error: for another directory of bundles, or the pid of a process that has ended, one that
// names the newest bundle.
Source open_source(const std::string& argument,
                   std::shared_ptr<const recording::CacheDirectory> cache = nullptr);

}  // namespace oomrec::tools::bundles

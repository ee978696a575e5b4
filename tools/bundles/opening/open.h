// Opens what a command line names: one process's recording, or the ranks of a job.
#pragma once

#include <memory>
#include <string>

#include "tools/bundles/store/source.h"

namespace oomrec::tools::bundles {

// `argument`: what open_recorded() takes, a directory with the bundles of a job's ranks, or empty:
// the newest bundle of the dump directory, after recordings of dead processes there were made
// bundles. `cache`: see Places. Throws Error.
Source open_source(const std::string& argument,
                   std::shared_ptr<const recording::CacheDirectory> cache = nullptr);

}  // namespace oomrec::tools::bundles

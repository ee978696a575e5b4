// `oomrec export --format row`: the only format of several bundles at once.
#pragma once

#include <string>
#include <vector>

#include "tools/bundles/opening/options.h"
#include "tools/views/export/output.h"

namespace oomrec::tools::commands {

// Writes a row for each bundle that is named: a bundle, a recording, a directory of bundles, with
// the rows of processes that ended well, or a merged bundle, which has one for each of its ranks.
// The rows of a file, or of stdin (-), get today's signatures. Of several, reports those that
// cannot be read on stderr and writes the others. Returns the exit code. Throws Error if the only
// one cannot be read.
int export_rows(const bundles::ReadOptions& options, const std::vector<std::string>& named,
                views::Output& output);

}  // namespace oomrec::tools::commands

// symbols.json for every native frame of a recording. With shortened paths, readers cannot find the
// program's files to symbolize later.
#pragma once

#include "tools/base/json.h"
#include "tools/bundles/redact/text_redactor.h"
#include "tools/recording/symbolize/locations.h"

namespace oomrec::tools::bundles {

Json all_symbols(const recording::Recording& recording, recording::Locations& locations,
                 const TextRedactor& redactor);

}  // namespace oomrec::tools::bundles

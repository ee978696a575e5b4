// At which moment a view shows what was held.
#pragma once

#include <string_view>

#include "tools/bundles/store/source.h"
#include "tools/recording/analysis/stacks.h"

namespace oomrec::tools::print {

// `asked`: the value of --at. Empty: the peak, if the process has freed most of it since; else the
// end.
recording::At moment_of(const bundles::Source&, std::string_view asked = {});

}  // namespace oomrec::tools::print

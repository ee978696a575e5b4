// symbols.json for every native frame of a recording: where its paths are cut, nobody finds the
// program's files again.
#pragma once

#include "tools/base/json.h"
#include "tools/bundles/redact/words.h"
#include "tools/recording/symbolize/places.h"

namespace oomrec::tools::bundles {

Json all_symbols(const recording::Recording& recording, recording::Places& places,
                 const RedactedWords& words);

}  // namespace oomrec::tools::bundles

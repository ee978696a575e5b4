// symbols.json for every native frame of a recording: where its paths are cut, nobody finds the
// program's files again.
#pragma once

#include "tools/json.h"
#include "tools/redact/words.h"
#include "tools/symbolize/places.h"

namespace oomrec::tools {

Json all_symbols(const Recording& recording, Places& places, const RedactedWords& words);

}  // namespace oomrec::tools

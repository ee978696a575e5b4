// A copy of a recording without what tells of its machine and user.
//
// The copy is a recording like any other: entries stay where they are. Only what is known is
// copied: the entries of tables, but for single events, and of the texts those that may be told,
// each in its place and never longer. Every other byte is zero.
#pragma once

#include <string>

#include "tools/bundles/redact/words.h"
#include "tools/recording/reading/recording.h"

namespace oomrec::tools::bundles {

// The bytes of recording.oomrec. `death`: what is known of it beside the recording; nullptr:
// nothing.
std::string redacted_recording(const recording::Recording& recording, const RedactedWords& words,
                               const session::Death* death);

}  // namespace oomrec::tools::bundles

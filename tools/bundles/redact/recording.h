// Redacts a recording.
//
// The result is a valid recording with all entries at their old offsets. It copies only what is
// known to be safe: the entries of tables except single events, and redacted strings, each at its
// offset and never longer than the original. Every other byte is zero.
#pragma once

#include <string>

#include "tools/bundles/redact/text_redactor.h"
#include "tools/recording/reading/recording.h"

namespace oomrec::tools::bundles {

// The bytes of recording.oomrec. `death`: evidence that is not in the recording; null: none.
std::string redacted_recording(const recording::Recording& recording, const TextRedactor& redactor,
                               const session::EndEvidence* end);

}  // namespace oomrec::tools::bundles

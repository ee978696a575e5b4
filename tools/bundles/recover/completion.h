// What a bundle's process came to is added to it, once that is known.
#pragma once

#include <filesystem>

#include "tools/deaths/ending.h"
#include "tools/recording/reading/recording.h"

namespace oomrec::tools::bundles {

// `related`: the end follows from what the bundle tells; else the process had recovered from that.
// A death for want of memory, by the kernel or by SIGBUS, becomes the bundle's verdict, and so does
// a crash that follows from the bundle's refusal (`crash_told`, if given, becomes true).
// `recording`: of the same process.
bool complete_bundle(const std::filesystem::path& bundle, const recording::Recording& recording,
                     const deaths::Ending& ending, bool related, bool* crash_told = nullptr);

}  // namespace oomrec::tools::bundles

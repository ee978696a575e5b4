// How the process of a bundle ended, as far as can be determined now.
//
// A bundle is usually written while its process still runs; its outcome is then "running". Whoever
// observes the end completes it: the process itself, `oomrec run`, or a reader that recovers the
// recording. Until then, readers check whether the process still exists.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "common/session/layout.h"
#include "common/session/vocabulary.h"
#include "tools/bundles/store/stored_facts.h"

namespace oomrec::tools::bundles {

// The stored outcome of a bundle that nobody has completed.
inline constexpr std::string_view kRunning = name_of(OutcomeKind::running);

std::uint64_t realtime_now_ns();

// Returns `stored`, the outcome in the bundle, unless it is "running". Then, reading /proc:
// "recovered" if the process has survived the event for kFollowsWithinNs. If it is gone, the
// outcome in its later bundles in the same directory (a process that exits completes its last
// one), else "unknown".
std::string current_outcome(const std::string& stored, const session::Header& process,
                            const std::filesystem::path& bundle, const Manifest& manifest);

}  // namespace oomrec::tools::bundles

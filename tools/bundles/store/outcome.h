// What became of the process of a bundle, as far as it can be known now.
//
// A bundle is written before its process' fate is known: "running". Whoever sees the end completes
// it (the process itself, `oomrec run`, a reader that finds its recording). Until then a reader
// looks whether the process is still there.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "common/session/layout.h"
#include "common/session/vocabulary.h"
#include "tools/base/json.h"

namespace oomrec::tools::bundles {

// The word of a bundle whose process lives on, as far as it was written.
inline constexpr std::string_view kRunning = name_of(OutcomeKind::running);

std::uint64_t realtime_now_ns();

// `stored`: the word in the bundle, which stands unless it is "running". Then "recovered" when the
// process has lived on long enough. When it is gone, what its later bundles beside this one know of
// its end (who ends by itself completes the last), else "unknown". Reads /proc.
std::string outcome_now(const std::string& stored, const session::Header& process,
                        const std::filesystem::path& bundle, const Json& manifest);

}  // namespace oomrec::tools::bundles

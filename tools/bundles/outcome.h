// What became of the process of a bundle, as far as it can be known now.
//
// A bundle is written before its process' fate is known: "running". Whoever sees the end completes
// it (the process itself, `oomrec run`, a reader that finds its recording). Until then a reader
// looks whether the process is still there.
#pragma once

#include <cstdint>
#include <string>

#include "recorder/session/layout.h"

namespace oomrec::tools {

std::uint64_t realtime_now_ns();

// `stored`: the word in the bundle, which stands unless it is "running". Then "recovered" when the
// process has lived on long enough, and "unknown" when it is gone. Reads /proc.
std::string outcome_now(const std::string& stored, const session::Header& process,
                        std::uint64_t created_realtime_ns);

}  // namespace oomrec::tools

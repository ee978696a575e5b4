// Reasons that the recorder itself gives for a bundle, and the verdict reads.
#pragma once

#include <string_view>

namespace oomrec::verdict {

// Of a bundle about an exception that the process got from another one, as a pool's worker sends
// it.
inline constexpr std::string_view kReasonOfWorker = "raised in another process";

}  // namespace oomrec::verdict

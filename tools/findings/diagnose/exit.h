// The exit codes of `oomrec diagnose`, the only command in which 2 does not mean bad input.
#pragma once

#include "tools/base/error.h"

namespace oomrec::tools::findings {

inline constexpr Exit kDiagnoseFailed = static_cast<Exit>(1);  // and bad input
inline constexpr Exit kMemoryRisk = static_cast<Exit>(2);

}  // namespace oomrec::tools::findings

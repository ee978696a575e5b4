// Which processes are of interest after their end.
#pragma once

#include "common/session/types.h"

namespace oomrec::session {

// A process that held less leaves no bundle, unless something else calls for one. The shells that
// start a program are recorded, too.
inline constexpr u64 kNotableBytes = u64{16} << 20;

}  // namespace oomrec::session

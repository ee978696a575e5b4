// The heap profile of a Perfetto trace: what each space holds, by stack.
#pragma once

#include "tools/views/export/format.h"
#include "tools/views/export/protobuf.h"

namespace oomrec::tools::views {

// A packet of the trace, which lacks only its sequence.
Message heap_profile(const Exported&);

}  // namespace oomrec::tools::views

// The heap profile of a Perfetto trace: what each space holds, by stack.
#pragma once

#include "tools/export/format.h"
#include "tools/export/protobuf.h"

namespace oomrec::tools {

// A packet of the trace, which lacks only its sequence.
Message heap_profile(const Exported&);

}  // namespace oomrec::tools

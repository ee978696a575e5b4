// The heap profile of a Perfetto trace: the holders of each space by stack.
#pragma once

#include "tools/views/export/format.h"
#include "tools/views/export/protobuf.h"

namespace oomrec::tools::views {

// A complete packet of the trace, except for its sequence id.
Message heap_profile(const ExportRequest&);

}  // namespace oomrec::tools::views

// Rows of an export as JSON objects: json writes them as they are, csv flattens them to columns.
#pragma once

#include "tools/analysis/timeline.h"
#include "tools/export/event_rows.h"
#include "tools/export/rows.h"
#include "tools/json.h"

namespace oomrec::tools {

Json holder_record(const HolderRow&);
Json event_record(const Recording&, const EventRow&);
Json moment_record(const Recording&, const Moment&);

}  // namespace oomrec::tools

// Rows of an export as JSON objects. The format json writes them; csv flattens them to columns.
#pragma once

#include "tools/base/json.h"
#include "tools/recording/reading/timeline.h"
#include "tools/views/export/event_rows.h"
#include "tools/views/export/rows.h"

namespace oomrec::tools::views {

Json holder_record(const HolderRow&);
Json event_record(const recording::Recording&, const EventRow&);
Json moment_record(const recording::Recording&, const recording::Moment&);

}  // namespace oomrec::tools::views

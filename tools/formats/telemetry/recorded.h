// A recording's time line as telemetry events.
#pragma once

#include <string>
#include <vector>

#include "tools/formats/telemetry/event.h"
#include "tools/recording/reading/timeline.h"

namespace oomrec::tools::formats {

// The values that all events of a recording have in common: pid, host, rank, the recorder's mode.
TelemetryEvent event_template(const recording::Recording& recording);

// Corrects figures that contradict each other, or makes them null. Makes texts printable.
void make_consistent(TelemetryEvent& event);

// One event for each moment and device (the host is one), each failure ("error") and each mark of
// the program. Sorted by time.
std::vector<TelemetryEvent> events_over_time(const recording::Recording& recording);

// "20.0 MiB refused to malloc".
std::string failure_text(std::uint64_t bytes, Api api);

}  // namespace oomrec::tools::formats

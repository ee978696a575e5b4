// What a recording saw over time, as telemetry.
#pragma once

#include <string>
#include <vector>

#include "tools/formats/telemetry/event.h"
#include "tools/recording/reading/timeline.h"

namespace oomrec::tools::formats {

// What is the same in all events of a recording: pid, host, rank, the recorder's mode.
TelemetryEvent event_begun(const recording::Recording& recording);

// Figures that contradict each other become null; texts become fit to print.
void make_consistent(TelemetryEvent& event);

// One event a moment and device, the host among them, and one a refusal ("error") and a mark of the
// program's own; in order of time.
std::vector<TelemetryEvent> events_over_time(const recording::Recording& recording);

// "20.0 MiB refused to malloc".
std::string refusal_text(std::uint64_t bytes, Api api);

}  // namespace oomrec::tools::formats

// The events of one process on one device, and their analysis: leaks, patterns, fragmentation,
// hidden memory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/findings/time_series/hidden_memory.h"
#include "tools/findings/time_series/patterns.h"
#include "tools/formats/telemetry/event.h"
#include "tools/formats/telemetry/records.h"

namespace oomrec::tools::findings {

// Sorted by time; has at least one event.
struct Stream {
  std::string host;
  std::int64_t pid = -1, device_id = -1;
  std::optional<std::int64_t> rank;
  std::vector<formats::TelemetryEvent> events;  // samples and others
  std::size_t oom_events = 0;                   // events of a failed allocation

  std::string name() const;  // "rank 3 on cuda:0", "4711 on the host"
};
std::vector<Stream> streams_of(const std::vector<formats::TelemetryEvent>& events);

struct StreamFindings {
  Series allocated;  // seconds since the first event of all streams
  std::vector<HeldSample> held;
  double mean_bytes = 0, peak_bytes = 0;
  std::optional<double> utilization;  // highest used share of the total

  std::vector<LeakFinding> leak_signs;
  std::optional<Spikes> spikes;
  std::optional<Steps> steps;
  std::optional<Period> period;
  std::optional<Trend> trend;
  Fragmented fragmentation;
  std::optional<HiddenGap> gap;

  bool leaks() const { return !leak_signs.empty(); }
  // From the mean of the first five samples to that of the last five, because the last sample may
  // follow the program's final frees. With fewer than ten samples: from the first to the last.
  double growth_bytes() const;
  double seconds() const;
};

// `begin_ns`: the time of second 0.
StreamFindings findings_of(const Stream& stream, std::int64_t begin_ns);

// The rank whose large growth (growth_began_at()) began first, and when. Nothing with fewer than
// two ranks, or if none grew.
struct FirstRank {
  std::int64_t rank = 0;
  double at_seconds = 0;
};
std::optional<FirstRank> first_rank_of(const std::vector<Stream>& streams,
                                       const std::vector<StreamFindings>& findings);

}  // namespace oomrec::tools::findings

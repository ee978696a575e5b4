// Memory over time, from the recorder's ticks: figures of every space and device, failed
// allocations, the program's marks, and the limits it ran under.
//
// At most 1,200 moments, evenly thinned. Times are of the session clock; Recording::realtime_of()
// converts them to wall-clock time.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "tools/recording/reading/recording.h"

namespace oomrec::tools::recording {

// The last figures that the driver and PyTorch reported before the moment.
struct DeviceMoment {
  std::uint32_t device = 0;  // entry in `devices`
  std::uint64_t counted_bytes = 0;
  std::uint64_t used_bytes = 0, total_bytes = 0;  // by all processes; total 0: never polled
  std::uint64_t torch_allocated_bytes = 0, torch_reserved_bytes = 0;
};

struct Moment {
  std::uint64_t time_ns = 0;
  std::uint64_t rss_bytes = 0;  // 0: unknown
  std::array<std::uint64_t, kSpaceCount> live_bytes{};
  std::vector<DeviceMoment> devices;
};

struct TimeMark {
  std::uint64_t time_ns = 0;
  std::string text;          // arbitrary bytes: apply printable() before showing it
  std::uint32_t thread = 0;  // entry in `threads`; 0: unknown
};

struct FailureMoment {
  std::uint64_t time_ns = 0;
  std::uint32_t failure = 0;  // entry in `failures`
};

struct LimitLine {
  std::string name;  // "--limit", "RLIMIT_AS", "cgroup", "RAM", "--limit-gpu cuda:0"
  std::uint64_t bytes = 0;
  std::uint32_t device = 0;  // entry in `devices`; 0: host memory
};

struct Timeline {
  // Sorted by time. The last one is the end of the recording, with exact figures.
  std::vector<Moment> moments;
  std::vector<TimeMark> marks;
  std::vector<FailureMoment> failures;  // without probes
  std::vector<LimitLine> limits;
  std::uint32_t dropped_marks = 0;  // the table was full
};

Timeline timeline_of(const Recording&);

}  // namespace oomrec::tools::recording

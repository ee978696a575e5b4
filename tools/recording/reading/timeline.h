// Memory over time, as the recorder's ticks saw it: figures of every space and device, what was
// refused, what the program said of itself, and the limits it ran under.
//
// At most 1,200 moments, evenly thinned. Times are of the session's clock: Recording::realtime_of()
// has the wall's.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "tools/recording/reading/recording.h"

namespace oomrec::tools::recording {

// As its driver and PyTorch's reporter told last before the moment.
struct DeviceMoment {
  std::uint32_t device = 0;  // entry in `devices`
  std::uint64_t counted_bytes = 0;
  std::uint64_t used_bytes = 0, total_bytes = 0;  // by all processes; total 0: never asked
  std::uint64_t torch_allocated_bytes = 0, torch_reserved_bytes = 0;
};

struct Moment {
  std::uint64_t time_ns = 0;
  std::uint64_t rss_bytes = 0;  // 0: not known
  std::array<std::uint64_t, kSpaceCount> live_bytes{};
  std::vector<DeviceMoment> devices;
};

struct TimeMark {
  std::uint64_t time_ns = 0;
  std::string text;          // any bytes: printable() before it is shown
  std::uint32_t thread = 0;  // entry in `threads`; 0: not known
};

struct RefusalMoment {
  std::uint64_t time_ns = 0;
  std::uint32_t failure = 0;  // entry in `failures`; probes are left out
};

struct LimitLine {
  std::string name;  // "--limit", "RLIMIT_AS", "cgroup", "RAM", "--limit-gpu cuda:0"
  std::uint64_t bytes = 0;
  std::uint32_t device = 0;  // entry in `devices`; 0: of the host
};

struct Timeline {
  // In order of time. The last is the end of the recording: figures as they are there, exact.
  std::vector<Moment> moments;
  std::vector<TimeMark> marks;
  std::vector<RefusalMoment> refusals;
  std::vector<LimitLine> limits;
  std::uint32_t dropped_marks = 0;  // there was no room for them
};

Timeline timeline_of(const Recording&);

}  // namespace oomrec::tools::recording

// The figures of one process, or of several together: gauges of memory, limits and headroom,
// counters that never decrease, and what was shipped.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "common/session/functions.h"
#include "common/session/vocabulary.h"
#include "common/verdict/kinds.h"

namespace oomrec::tools::service {

struct Gauges {
  struct SpaceBytes {
    std::uint64_t live = 0, peak = 0;
  };
  struct DeviceBytes {
    std::uint64_t used = 0, total = 0;  // by all processes, as the driver last reported
  };
  // The limit with the smallest headroom in proportion.
  struct Nearest {
    LimitKind kind = LimitKind::none;
    std::uint64_t limit_bytes = 0;
    std::uint64_t headroom_bytes = 0;
    double headroom_ratio() const {
      return limit_bytes == 0
                 ? 0
                 : static_cast<double>(headroom_bytes) / static_cast<double>(limit_bytes);
    }
  };
  using DeviceName = std::pair<std::string, std::string>;  // "cuda:0", UUID (empty: unknown)

  std::map<Space, SpaceBytes> spaces;
  std::uint64_t rss_bytes = 0;
  std::map<DeviceName, DeviceBytes> devices;
  std::map<LimitKind, std::uint64_t> limits;
  std::optional<Nearest> nearest;  // empty: no limit is known

  // Adds another process. Live bytes are summed. Of peaks and of device use, the highest counts; of
  // limits, the lowest; of nearest limits, the one with the smaller headroom.
  void add(const Gauges& other);
};

// The counters of a process or a program. They never decrease.
struct Counts {
  std::map<Api, std::uint64_t> failures;  // without probes; Api::none: other functions
  std::array<std::uint64_t, kTriggerNames.size()> bundles{};  // by Trigger
  std::array<std::uint64_t, kVerdictNames.size()> deaths{};   // by VerdictCode
  // Deaths whose verdict is about memory, by Certainty.
  std::array<std::uint64_t, kCertaintyNames.size()> memory_deaths{};
  std::uint64_t events = 0;
  std::uint64_t dropped_events = 0;

  // `certainty`: of a verdict in a bundle; without one nothing is claimed.
  void add_death(VerdictCode verdict, std::optional<Certainty> certainty) {
    deaths[static_cast<std::size_t>(verdict)] += 1;
    if (certainty && verdict::is_death_related_to_memory(verdict))
      memory_deaths[static_cast<std::size_t>(*certainty)] += 1;
  }

  Counts& operator+=(const Counts& more) {
    for (const auto& [api, count] : more.failures) failures[api] += count;
    for (std::size_t i = 0; i < bundles.size(); ++i) bundles[i] += more.bundles[i];
    for (std::size_t i = 0; i < deaths.size(); ++i) deaths[i] += more.deaths[i];
    for (std::size_t i = 0; i < memory_deaths.size(); ++i)
      memory_deaths[i] += more.memory_deaths[i];
    events += more.events;
    dropped_events += more.dropped_events;
    return *this;
  }

  std::uint64_t failures_total() const {
    std::uint64_t sum = 0;
    for (const auto& [api, count] : failures) sum += count;
    return sum;
  }
};

// What `oomrec watch --ship` has done since it started.
struct ShipFigures {
  std::uint64_t rows = 0, raws = 0;  // that arrived
  std::uint64_t errors = 0;          // uploads that failed, and are tried again
  std::uint64_t unshipped = 0;       // bundles of which something is still to arrive

  bool operator==(const ShipFigures&) const = default;
};

}  // namespace oomrec::tools::service

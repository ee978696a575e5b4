// The counters of a process or a program. They never decrease.
#pragma once

#include <array>
#include <cstdint>
#include <map>

#include "common/session/vocabulary.h"

namespace oomrec::tools::service {

struct Counts {
  std::map<Api, std::uint64_t> failures;  // without probes; Api::none: other functions
  std::array<std::uint64_t, kTriggerNames.size()> bundles{};  // by Trigger
  std::array<std::uint64_t, kVerdictNames.size()> deaths{};   // by VerdictCode
  std::uint64_t events = 0;
  std::uint64_t dropped_events = 0;

  Counts& operator+=(const Counts& more) {
    for (const auto& [api, count] : more.failures) failures[api] += count;
    for (std::size_t i = 0; i < bundles.size(); ++i) bundles[i] += more.bundles[i];
    for (std::size_t i = 0; i < deaths.size(); ++i) deaths[i] += more.deaths[i];
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

}  // namespace oomrec::tools::service

// The counters of a process or a program. They never decrease.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>

#include "common/session/functions.h"
#include "common/verdict/kinds.h"

namespace oomrec::tools::service {

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

}  // namespace oomrec::tools::service

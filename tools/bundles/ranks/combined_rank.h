// One rank while the recordings of a job are combined: maps its entries to those of the image.
// Private to this folder.
#pragma once

#include <cstdint>
#include <vector>

#include "tools/bundles/ranks/combined_names.h"
#include "tools/bundles/ranks/job.h"

namespace oomrec::tools::bundles {

// Session time at which the earliest rank started. Not 0, which means "no time".
inline constexpr std::uint64_t kCombinedStartNs = 1'000'000'000;

struct RankPart {
  RankPart(const JobRank& from, CombinedNames& all, std::uint64_t job_start_realtime_ns)
      : rank(from),
        names(all, *from.source.recording, from.identity.rank),
        start(job_start_realtime_ns) {}

  const recording::Recording& recording() const { return *rank.source.recording; }
  const session::View& view() const { return recording().view(); }

  // From the rank's session clock to the image's.
  std::uint64_t time(std::uint64_t monotonic_ns) const {
    return kCombinedStartNs + (rank.realtime_of(monotonic_ns) - start);
  }

  static std::uint32_t at(const std::vector<std::uint32_t>& numbers, std::uint32_t number) {
    return number < numbers.size() ? numbers[number] : 0;
  }

  const JobRank& rank;
  CombinedNames::OfRank names;
  std::uint64_t start;
  std::vector<std::uint32_t> threads, devices, holders;  // the recording's entry → the image's
};

}  // namespace oomrec::tools::bundles

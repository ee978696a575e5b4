// What the files of this folder share while they combine the recordings of a job: the names of
// all ranks in one image, and one rank's entries in it.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tools/bundles/ranks/job.h"
#include "tools/recording/reading/image.h"
#include "tools/recording/reading/recording.h"

namespace oomrec::tools::bundles {

class CombinedNames {
 public:
  explicit CombinedNames(recording::Image& image) : image_(image) {}

  // For one rank's recording. It must outlive the image, which refers to its strings.
  class OfRank {
   public:
    OfRank(CombinedNames& all, const recording::Recording& recording, std::uint32_t rank);

    session::StringId string(session::StringId id);
    // A node of the recording → one of the image; 0: the table is full.
    std::uint32_t node(std::uint32_t node);
    std::uint64_t frame(std::uint64_t frame);

   private:
    std::uint32_t module(std::uint32_t id);
    std::uint32_t code(std::uint32_t id);

    CombinedNames& all_;
    const session::View& view_;
    std::uint32_t root_;
    bool same_python_;  // as the first rank: otherwise its line tables cannot be decoded
    std::vector<std::uint32_t> nodes_, modules_;
    std::map<std::uint32_t, std::uint32_t> codes_;
    std::vector<std::pair<std::uint32_t, session::Node>> untranslated_;  // scratch of node()
  };

 private:
  recording::Image& image_;
  std::uint32_t python_ = 0;  // version of the first rank that runs it
  std::map<std::pair<session::StringId, std::string>, std::uint32_t> modules_;
  std::map<std::array<std::uint32_t, 4>, std::uint32_t> codes_;
};

// One rank while the recordings of a job are combined: maps its entries to those of the image.
// Private to this folder.

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

// When and why a rank ran short of memory.
//
// A failure that ended the rank takes precedence over one that it survived, and that over mere
// growth: a failed request that the rank coped with an hour ago is not why the job died.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/bundles/store/source.h"
#include "tools/recording/reading/timeline.h"

namespace oomrec::tools::bundles {

enum class RankFailureKind : std::uint8_t { ended, refused, grew };  // most severe first
inline constexpr auto kRankFailureNames =
    std::to_array<std::string_view>({"ended", "refused", "grew"});
constexpr std::string_view word_of(RankFailureKind kind) {
  return name_of(kRankFailureNames, kind);
}

struct RankFailure {
  RankFailureKind kind = RankFailureKind::grew;
  std::uint64_t realtime_ns = 0;  // on its own host's clock
  std::string what;               // "malloc was refused 64.0 MiB"
};

// Empty: the recording shows none.
std::optional<RankFailure> rank_failure_of(const Source& source);

// The first time that live bytes had grown by 64 MiB and by a tenth of their peak, without
// shrinking in between. Empty: they never did.
struct Growth {
  std::uint64_t time_ns = 0;  // when the growth reached `bytes`
  std::uint64_t bytes = 0;
};
std::optional<Growth> first_growth(const std::vector<recording::Moment>& moments,
                                   std::uint64_t peak_bytes);

// Whether the process was ended by SIGTERM, as launchers end the ranks of a job that has lost one.
bool was_terminated(const std::string& outcome);

}  // namespace oomrec::tools::bundles

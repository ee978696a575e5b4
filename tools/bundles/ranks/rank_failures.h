// When and why a rank got into trouble with its memory, and which of them was first.
//
// What ended a rank counts before what it survived, and that before mere growth: a refusal that was
// coped with an hour ago is not why the job died.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/bundles/store/source.h"
#include "tools/recording/reading/timeline.h"

namespace oomrec::tools::bundles {

enum class TroubleKind : std::uint8_t { ended, refused, grew };  // the gravest first
inline constexpr auto kTroubleNames = std::to_array<std::string_view>({"ended", "refused", "grew"});
constexpr std::string_view word_of(TroubleKind kind) { return name_of(kTroubleNames, kind); }

struct Trouble {
  TroubleKind kind = TroubleKind::grew;
  std::uint64_t realtime_ns = 0;  // by its own host's clock
  std::string what;               // "malloc was refused 64.0 MiB"
};

// Nothing: none that the recording knows of.
std::optional<Trouble> trouble_of(const Source& source);

// When live bytes had first grown, without a step back, by 64 MiB and by a tenth of their peak.
// Nothing: they never did.
struct Growing {
  std::uint64_t time_ns = 0;  // of the moment that it was reached at
  std::uint64_t bytes = 0;
};
std::optional<Growing> first_growth(const std::vector<recording::Moment>& moments,
                                    std::uint64_t peak_bytes);

// Whether a process was ended by a SIGTERM: how launchers end the ranks of a job that has lost one.
bool was_terminated(const std::string& outcome);

}  // namespace oomrec::tools::bundles

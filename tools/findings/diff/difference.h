// The difference between two recordings: growth by space, by stack and by function.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "tools/recording/analysis/stacks.h"

namespace oomrec::tools::findings {

// One of the two recordings.
struct DiffSide {
  const recording::Recording& recording;
  recording::Stacks& stacks;
  const recording::Locations& locations;
};

struct Amount {
  std::uint64_t bytes = 0, count = 0;
  // Of stacks and functions at the end: what of the bytes was in memory or in swap. Nothing: nobody
  // has looked.
  std::optional<std::uint64_t> resident_bytes = {};
};

struct Change {
  Amount before, after;
  bool estimated = false;
  bool by_chance = false;       // not significant: the randomness of sampling explains it
  bool is_of_resident = false;  // what it is ranked by, instead of the bytes

  std::int64_t growth() const {
    return static_cast<std::int64_t>(after.bytes) - static_cast<std::int64_t>(before.bytes);
  }
  // Nothing if one side's is not known.
  std::optional<std::int64_t> resident_growth() const;
  std::int64_t ranked_growth() const {
    return is_of_resident ? resident_growth().value_or(0) : growth();
  }
  // "new", "gone", "grown", "shrunk" or "same".
  std::string_view word() const;
};

// How the two sides of a row were matched.
enum class Match : std::uint8_t { none, location, symbol };
std::string_view name_of(Match match);

struct StackChange : Change {
  Space space = Space::heap;
  Match match = Match::none;
  // The largest stack of each side; 0: none.
  recording::StackId stack_before = 0, stack_after = 0;
};

struct FunctionChange : Change {
  // The line that grew most (if the function shrank: that shrank most), on each side that has it;
  // 0: unknown function.
  recording::LocationId location_before = 0, location_after = 0;
};

struct SpaceChange : Change {
  Space space = Space::heap;
};

struct Difference {
  std::vector<SpaceChange> spaces;  // all that are not empty on both sides, in enum order
  // By ranked_growth(): what grew most first, what shrank most last.
  std::vector<StackChange> stacks;
  std::vector<FunctionChange> functions;
  Change total;
};

// `only`: the space of stacks, functions and the total; nothing: the spaces that add up. Totals of
// spaces are exact. At the end, totals count usable bytes, and stacks what their blocks take up.
//
// At the end stacks and functions are ranked by what of them is in memory if that is known of both
// sides and one of them weighs it (recording::Weight); else by the larger change of the two, so
// that memory which is filled later than it was requested is seen.
Difference difference(DiffSide before, DiffSide after, recording::At at, std::optional<Space> only);

}  // namespace oomrec::tools::findings

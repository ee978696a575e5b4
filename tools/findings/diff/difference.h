// What grew and what shrank between two recordings: by space, by stack and by function.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "tools/recording/analysis/stacks.h"

namespace oomrec::tools::findings {

// One of the two that are compared.
struct DiffSide {
  const recording::Recording& recording;
  recording::Stacks& stacks;
  const recording::Places& places;
};

struct Amount {
  std::uint64_t bytes = 0, count = 0;
};

struct Change {
  Amount before, after;
  bool estimated = false;
  bool by_chance = false;  // no more than the chance of sampling explains

  std::int64_t growth() const {
    return static_cast<std::int64_t>(after.bytes) - static_cast<std::int64_t>(before.bytes);
  }
  // "new", "gone", "grown", "shrunk" or "same".
  std::string_view word() const;
};

// How the two sides of a row were found to be one.
enum class Match : std::uint8_t { none, place, symbol };
std::string_view name_of(Match match);

struct StackChange : Change {
  Space space = Space::heap;
  Match match = Match::none;
  // Of each side the stack that held most; 0: nothing there.
  recording::StackId stack_before = 0, stack_after = 0;
};

struct FunctionChange : Change {
  // Its line that grew most (of one that shrank, that shrank most), of the sides that have it; 0:
  // no function is known.
  recording::PlaceId place_before = 0, place_after = 0;
};

struct SpaceChange : Change {
  Space space = Space::heap;
};

struct Difference {
  std::vector<SpaceChange> spaces;        // all that hold or held something, in their order
  std::vector<StackChange> stacks;        // what grew most first, what shrank most last
  std::vector<FunctionChange> functions;  // likewise
  Change total;
};

// `only`: what stacks, functions and the total are of; nothing: of the spaces that add up. Totals
// of spaces are exact; at the end they count usable bytes, as everywhere, and stacks what was asked
// for.
Difference difference(DiffSide before, DiffSide after, recording::At at, std::optional<Space> only);

}  // namespace oomrec::tools::findings

// "spaces" of the commands: what each kind of memory had.
#pragma once

#include <concepts>

#include "common/facts/describe.h"

namespace oomrec::facts {

struct SpaceTotals {
  std::uint64_t live_bytes = 0, live_count = 0, peak_bytes = 0;
  std::uint64_t allocated_bytes = 0, allocated_count = 0;
};
// Of mappings.
struct MapTotals : SpaceTotals {
  std::uint64_t reserved_bytes = 0;
};
// In a list of all.
struct NamedTotals : SpaceTotals {
  std::string_view name;
  bool is_additive = false;
};

template <std::derived_from<SpaceTotals> Fact>
struct Section<Fact> {
  static constexpr bool is_named = requires(Fact & space) { space.name; };
  static constexpr bool is_map = requires(Fact & space) { space.reserved_bytes; };
  static constexpr std::string_view key = is_named ? "named_space" : is_map ? "map_space" : "space";
  static constexpr std::string_view meaning = "the usable bytes of the blocks of a kind of memory";
  static constexpr JsonLayout layout = JsonLayout::lines;

  static void describe(auto& v, auto& space) {
    if constexpr (is_named) {
      v.field("name", space.name, "the space");
      v.field("adds_up", Flag{space.is_additive}, "whether no other space contains it");
    }
    v.field("live_bytes", space.live_bytes, "in use");
    v.field("live_count", space.live_count, "the number of these blocks");
    v.field("peak_bytes", space.peak_bytes, "the most that was in use");
    v.field("allocated_bytes", space.allocated_bytes, "what was ever in use");
    v.field("allocated_count", space.allocated_count, "the number of these blocks");
    if constexpr (is_map)
      v.field("reserved_bytes", space.reserved_bytes,
              "`map` only: address space that cannot be accessed");
  }
};

}  // namespace oomrec::facts

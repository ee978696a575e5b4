#include "tools/print/spaces.h"

#include <fmt/format.h>

#include "tools/base/text.h"

namespace oomrec::tools::print {
namespace {

// Why a space is in no sum; of mapped memory, what has rows of its own.
std::string_view remark_of(const recording::Recording& recording, Space space) {
  if (space == Space::map && recording.header().python.objects == session::PoolObjects::sampled)
    return "  incl. python";
  if (is_additive(space)) return "";
  return space == Space::torch ? "  counted above" : "  address space";
}

}  // namespace

std::string spaces_text(const recording::Recording& recording) {
  std::string text = fmt::format("  {:<10} {:>12} {:>12} {:>12} {:>14} {:>14}\n", "space", "live",
                                 "peak", "allocated", "live blocks", "allocations");
  for (std::size_t i = 0; i < kSpaceCount; ++i) {
    const auto space = static_cast<Space>(i);
    const recording::SpaceTotals totals = recording.totals(space);
    if (totals.allocated_count == 0 && totals.live_bytes == 0) continue;
    text += fmt::format("  {:<10} {:>12} {:>12} {:>12} {:>14} {:>14}{}\n", name_of(space),
                        size_text(totals.live_bytes), size_text(recording.peak_bytes(space)),
                        size_text(totals.allocated_bytes), count_text(totals.live_count),
                        count_text(totals.allocated_count), remark_of(recording, space));
  }
  const std::uint64_t reserved =
      recording.header().spaces[static_cast<std::size_t>(Space::map)].reserved_bytes;
  if (reserved != 0)
    text += fmt::format("  {} of address space is reserved but not counted\n", size_text(reserved));
  return text;
}

Json spaces_json(const recording::Recording& recording) {
  Json spaces = Json::object();
  for (std::size_t i = 0; i < kSpaceCount; ++i) {
    const auto space = static_cast<Space>(i);
    if (!has_totals(space)) continue;
    const recording::SpaceTotals totals = recording.totals(space);
    Json& row = spaces[std::string{name_of(space)}];
    row = {
        {"live_bytes", totals.live_bytes},           {"live_count", totals.live_count},
        {"peak_bytes", recording.peak_bytes(space)}, {"allocated_bytes", totals.allocated_bytes},
        {"allocated_count", totals.allocated_count},
    };
    if (space == Space::map)
      row["reserved_bytes"] = recording.header().spaces[i].reserved_bytes.load();
  }
  return spaces;
}

}  // namespace oomrec::tools::print

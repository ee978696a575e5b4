#include "tools/sections/holders.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "tools/base/fact_reader.h"
#include "tools/base/text.h"

namespace oomrec::tools::sections {
namespace {

constexpr std::size_t kMostHolders = 10;
constexpr double kLeastShare = 0.01;

// How many rows to show by default: those with at least 1 % of the bytes, at most 10, and always
// the first.
std::size_t default_row_count(const std::vector<recording::StackSum>& rows, std::uint64_t whole) {
  std::size_t count = std::min<std::size_t>(rows.size(), 1);
  while (count < std::min(rows.size(), kMostHolders) &&
         share_of(rows[count].figures.bytes, whole) >= kLeastShare) {
    ++count;
  }
  return count;
}

std::string holder_text(std::size_t number, const recording::StackSum& row, double share,
                        const std::string& stack, const Terminal& terminal) {
  const recording::StackFigures& of = row.figures;
  const bool weighs_resident = of.resident_bytes && of.bytes == *of.resident_bytes;
  const std::string figures =
      fmt::format("{}{} in {} ({})", of.estimated ? "about " : "",
                  held_text(of.live_bytes, of.resident_bytes, weighs_resident),
                  plural(of.count, "block", "blocks"), percent_text(share));
  std::string spaces;
  for (const Space space : row.spaces) {
    if (!spaces.empty()) spaces += ", ";
    spaces += name_of(space);
  }
  if (of.depths > 1) spaces += ", at various depths of a recursion";
  return fmt::format("  {:>2}  {}  {}\n{}", number, terminal.paint(Colour::yellow, figures), spaces,
                     stack);
}

struct GroupKind {
  std::string_view heading;
  bool (*contains)(Space);
};
constexpr GroupKind kGroupKinds[] = {
    {"holders, the largest first", is_additive},
    {"PyTorch's tensors, inside the memory of the holders above",
     [](Space space) { return space == Space::torch; }},
    {"address space, and mapped memory of other processes: none of its own memory",
     [](Space space) { return space == Space::cuda_va || space == Space::hip_va; }},
};

}  // namespace

std::string held_text(std::uint64_t given, std::optional<std::uint64_t> resident_bytes,
                      bool weighs_resident) {
  // The rest was never touched, or was given back with madvise().
  constexpr double kWorthAWord = 0.05;
  const std::uint64_t resident = resident_bytes.value_or(given);
  std::string text = size_text(weighs_resident ? resident : given);
  if (share_of(given - std::min(given, resident), given) >= kWorthAWord)
    text += weighs_resident ? fmt::format(" resident of {}", size_text(given))
                            : fmt::format(", {} of it resident,", size_text(resident));
  return text;
}

std::uint64_t HolderGroup::bytes() const {
  std::uint64_t bytes = 0;
  for (const recording::StackFigures& row : rows) bytes += row.bytes;
  return bytes;
}

std::vector<HolderGroup> holder_groups(const std::vector<recording::StackFigures>& rows) {
  std::vector<HolderGroup> groups;
  for (const GroupKind& kind : kGroupKinds) {
    HolderGroup group{kind.heading, {}};
    std::copy_if(rows.begin(), rows.end(), std::back_inserter(group.rows),
                 [&](const recording::StackFigures& row) { return kind.contains(row.space); });
    if (groups.empty() || !group.rows.empty()) groups.push_back(std::move(group));
  }
  return groups;
}

std::vector<HolderGroup> holder_groups(const bundles::Source& source, recording::Stacks& stacks,
                                       recording::At at) {
  return holder_groups(
      recording::merged(source.recording->holders(), stacks, at, recording::Recursion::collapsed));
}

HolderGroup holders_on(const bundles::Source& source, const recording::DeviceFigures& device,
                       recording::Stacks& stacks) {
  return {{},
          recording::merged(recording::holders_on(*source.recording, device.entry), stacks,
                            recording::At::end, recording::Recursion::collapsed)};
}

std::string holders_text(const HolderGroup& group, recording::Stacks& stacks,
                         const recording::Locations& locations, const HoldersStyle& style) {
  const std::vector<recording::StackSum> rows = recording::summed_over_spaces(group.rows, stacks);
  const std::uint64_t whole = group.bytes();
  const std::size_t shown = style.top != 0 ? std::min<std::size_t>(rows.size(), style.top)
                                           : default_row_count(rows, whole);
  std::string text;
  std::uint64_t rest = whole;
  for (std::size_t i = 0; i < shown; ++i) {
    const recording::StackFigures& figures = rows[i].figures;
    rest -= figures.bytes;
    text +=
        holder_text(i + 1, rows[i], share_of(figures.bytes, whole),
                    recording::stack_text(stacks.locations(figures.stack), locations, style.stack),
                    style.stack.terminal);
  }
  if (shown < rows.size()) {
    text += fmt::format("  and {} with {} ({}) together: --top N\n",
                        plural(rows.size() - shown, "smaller holder", "smaller holders"),
                        size_text(rest), percent_text(share_of(rest, whole)));
  }
  return text;
}

Json holders_json(const HolderGroup& group, const recording::Stacks& stacks,
                  const recording::Locations& locations, std::size_t top) {
  const std::uint64_t whole = group.bytes();
  Json holders = Json::array();
  for (std::size_t i = 0; i < std::min(group.rows.size(), top); ++i) {
    const recording::StackFigures& row = group.rows[i];
    holders.push_back({
        {"space", name_of(row.space)},
        {"bytes", row.live_bytes},
        {"resident_bytes", row.resident_bytes},
        {"count", row.count},
        {"share", share_of(row.bytes, whole)},
        {"estimated", row.estimated},
        {"depths", row.depths},
        {"stack", recording::stack_json(stacks.locations(row.stack), locations)},
    });
  }
  return holders;
}

recording::At moment_of(const bundles::Source& source, std::string_view asked) {
  const recording::At usual = source.has_freed_most() ? recording::At::peak : recording::At::end;
  return value_named<recording::At>(recording::kAtNames, asked).value_or(usual);
}

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
    text += fmt::format("  {} of address space is reserved, and counts as far as it is touched\n",
                        size_text(reserved));
  return text;
}

facts::SpaceTotals totals_of(const recording::Recording& recording, Space space) {
  const recording::SpaceTotals totals = recording.totals(space);
  return {totals.live_bytes, totals.live_count, recording.peak_bytes(space), totals.allocated_bytes,
          totals.allocated_count};
}

Json spaces_json(const recording::Recording& recording) {
  Json spaces = Json::object();
  for (std::size_t i = 0; i < kSpaceCount; ++i) {
    const auto space = static_cast<Space>(i);
    if (!has_totals(space)) continue;
    const facts::SpaceTotals totals = totals_of(recording, space);
    spaces[name_of(space)] =
        space == Space::map
            ? fact_json(facts::MapTotals{totals, recording.header().spaces[i].reserved_bytes})
            : fact_json(totals);
  }
  return spaces;
}

}  // namespace oomrec::tools::sections

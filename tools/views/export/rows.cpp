#include "tools/views/export/rows.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/text/text.h"
#include "tools/base/text.h"

namespace oomrec::tools::views {
namespace {

void add(Amount& sum, std::uint64_t bytes, std::uint64_t count) {
  sum.bytes += bytes;
  sum.count += count;
}

std::string unbounded_name(const recording::Location& location,
                           const recording::Locations& locations) {
  if (location.kind == recording::Location::Kind::note) return location.function;
  if (location.kind == recording::Location::Kind::python) {
    return fmt::format("{} ({}:{})", location.function.empty() ? "?" : location.function,
                       location.file.empty() ? "?" : text::base_name(location.file), location.line);
  }
  if (!location.function.empty()) return location.function;
  const std::string module{text::base_name(locations.module_path(location))};
  return fmt::format("{}+{:#x}", module.empty() ? "unknown code" : module, location.offset);
}

bool is_selected(const recording::Recording& recording, const recording::HolderFigures& holder,
                 const Selection& selection) {
  const bool in_space = selection.space == "all" ? is_additive(holder.space)
                                                 : name_of(holder.space) == selection.space;
  return in_space &&
         (selection.group.empty() || group_of(recording.view(), holder.node) == selection.group);
}

}  // namespace

// Its frame is the outermost one, or next to a job's rank.
std::string_view group_of(const session::View& view, std::uint32_t node) {
  std::string_view name;
  view.walk(node, [&](std::uint64_t frame) {
    if (session::kind_of(frame) == session::FrameKind::special &&
        session::special_of(frame) == session::SpecialFrame::thread_group)
      name = view.string(session::argument_of(frame));
  });
  return name;
}

recording::StackId exported_stack(recording::Stacks& stacks, std::uint32_t node) {
  return stacks.reduced(stacks.of_node(node));
}

std::vector<HolderRow> holder_rows(const recording::Recording& recording, recording::Stacks& stacks,
                                   const Selection& selection) {
  std::vector<HolderRow> rows;
  std::unordered_map<std::uint64_t, std::size_t> row_of;  // by space and stack
  for (const recording::HolderFigures& holder : recording.holders()) {
    if (!is_selected(recording, holder, selection)) continue;
    const recording::StackId stack = exported_stack(stacks, holder.node);
    const std::uint64_t key = static_cast<std::uint64_t>(holder.space) << 32 | stack;
    const auto [at, is_new] = row_of.try_emplace(key, rows.size());
    if (is_new) rows.push_back({stack, holder.space, holder.api, false, {}, {}, {}, {}, {}, 0});
    HolderRow& row = rows[at->second];
    row.estimated = row.estimated || holder.estimated;
    add(row.end, holder.weight_bytes(), holder.live_count);
    add(row.live, holder.live_bytes, holder.live_count);
    if (holder.resident_bytes)
      row.resident_bytes = row.resident_bytes.value_or(0) + *holder.resident_bytes;
    add(row.peak, holder.peak_bytes, holder.peak_count);
    add(row.ever, holder.total_bytes, holder.total_count);
    row.temporary += holder.temporary_count;
  }
  std::ranges::stable_sort(
      rows, [](const HolderRow& a, const HolderRow& b) { return a.end.bytes > b.end.bytes; });
  return rows;
}

std::vector<recording::LocationId> frames_of(const recording::Stacks& stacks,
                                             recording::StackId stack) {
  std::vector<recording::LocationId> frames = stacks.locations(stack);
  if (frames.empty()) frames.push_back(0);
  return frames;
}

std::string frame_name(const recording::Locations& locations, recording::LocationId id) {
  if (id == 0) return "[no stack was recorded]";
  return clip(printable(unbounded_name(locations[id], locations)), kLongestName);
}

}  // namespace oomrec::tools::views

#include "tools/analysis/stacks.h"

#include <algorithm>

namespace oomrec::tools {

Stacks::Stacks(const Recording& recording, Places& places)
    : recording_(recording),
      places_(places),
      entries_{{0, 0}},
      of_node_(recording.view().count(session::TableId::nodes)),
      known_(of_node_.size()) {}

StackId Stacks::child(StackId parent, PlaceId place) {
  const std::uint64_t key = std::uint64_t{parent} << 32 | place;
  const auto [at, is_new] = children_.try_emplace(key, static_cast<StackId>(entries_.size()));
  if (is_new) entries_.push_back({parent, place});
  return at->second;
}

StackId Stacks::of_node(std::uint32_t node) {
  // Outwards to a node that is known, then back in.
  std::vector<std::pair<std::uint32_t, std::uint64_t>> unknown;
  session::Node entry{};
  StackId stack = 0;
  while (node != 0 && node < known_.size()) {
    if (known_[node]) {
      stack = of_node_[node];
      break;
    }
    if (!recording_.view().read(session::TableId::nodes, node, entry)) break;
    unknown.emplace_back(node, entry.frame);
    if (entry.parent >= node) break;  // forged: parents are always older
    node = entry.parent;
  }
  for (auto at = unknown.rbegin(); at != unknown.rend(); ++at) {
    const std::vector<PlaceId>& frame = places_.of_frame(at->second);
    for (auto place = frame.rbegin(); place != frame.rend(); ++place) stack = child(stack, *place);
    of_node_[at->first] = stack;
    known_[at->first] = true;
  }
  return stack;
}

std::vector<PlaceId> Stacks::places(StackId stack) const {
  std::vector<PlaceId> places;
  for (; stack != 0; stack = entries_[stack].parent) places.push_back(entries_[stack].place);
  return places;
}

std::vector<StackFigures> merged(const std::vector<HolderFigures>& holders, Stacks& stacks, At at) {
  std::vector<StackFigures> rows;
  std::unordered_map<std::uint64_t, std::size_t> row_of;  // by stack and space
  for (const HolderFigures& holder : holders) {
    const std::uint64_t bytes = at == At::end    ? holder.live_bytes
                                : at == At::peak ? holder.peak_bytes
                                                 : holder.total_bytes;
    const std::uint64_t count = at == At::end    ? holder.live_count
                                : at == At::peak ? holder.peak_count
                                                 : holder.total_count;
    if (bytes == 0 && count == 0) continue;
    const StackId stack = stacks.of_node(holder.node);
    const std::uint64_t key = std::uint64_t{stack} << 8 | static_cast<std::uint8_t>(holder.space);
    const auto [found, is_new] = row_of.try_emplace(key, rows.size());
    if (is_new) rows.push_back({stack, holder.space, false, 0, 0});
    StackFigures& row = rows[found->second];
    row.bytes += bytes;
    row.count += count;
    row.estimated = row.estimated || holder.estimated;
  }
  std::sort(rows.begin(), rows.end(), [](const StackFigures& a, const StackFigures& b) {
    return a.bytes != b.bytes ? a.bytes > b.bytes : a.stack < b.stack;
  });
  return rows;
}

}  // namespace oomrec::tools

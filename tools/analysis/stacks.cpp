#include "tools/analysis/stacks.h"

#include <algorithm>

namespace oomrec::tools {
namespace {

void sort_by_bytes(std::vector<StackFigures>& rows) {
  std::sort(rows.begin(), rows.end(), [](const StackFigures& a, const StackFigures& b) {
    return a.bytes != b.bytes ? a.bytes > b.bytes : a.stack < b.stack;
  });
}

// One row for all of a space whose `key_of(stack)` is the same, with the stack of the first of
// them; the largest first.
template <class KeyOf>
std::vector<StackFigures> grouped(const std::vector<StackFigures>& rows, KeyOf key_of) {
  std::vector<StackFigures> groups;
  std::unordered_map<std::uint64_t, std::size_t> group_of;  // by key and space
  for (const StackFigures& row : rows) {
    const std::uint64_t key =
        std::uint64_t{key_of(row.stack)} << 8 | static_cast<std::uint8_t>(row.space);
    const auto [found, is_new] = group_of.try_emplace(key, groups.size());
    if (is_new) {
      groups.push_back(row);
      continue;
    }
    StackFigures& group = groups[found->second];
    group.bytes += row.bytes;
    group.count += row.count;
    group.estimated = group.estimated || row.estimated;
  }
  sort_by_bytes(groups);
  return groups;
}

}  // namespace

Stacks::Stacks(const Recording& recording, Places& places)
    : recording_(recording),
      places_(places),
      entries_{{0, 0, 0, false}},
      of_node_(recording.view().count(session::TableId::nodes)),
      known_(of_node_.size()) {}

StackId Stacks::child(StackId parent, PlaceId place) {
  const std::uint64_t key = std::uint64_t{parent} << 32 | place;
  const auto [at, is_new] = children_.try_emplace(key, static_cast<StackId>(entries_.size()));
  const StackId stack = at->second;
  if (!is_new) return stack;
  const Entry outer = entries_[parent];
  const bool python = places_[place].kind == Place::Kind::python;
  entries_.push_back({parent, place, stack, outer.runs_python || python});
  // At most one call deep: the stack it is made in has no such frames, so the new one is its own.
  if (places_[place].interpreter) {
    entries_[stack].without_interpreter = outer.without_interpreter;
  } else if (outer.without_interpreter != parent) {
    const StackId shorter = child(outer.without_interpreter, place);
    entries_[stack].without_interpreter = shorter;
  }
  return stack;
}

StackId Stacks::without_interpreter(StackId stack) const {
  return entries_[stack].runs_python ? entries_[stack].without_interpreter : stack;
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
  for (const HolderFigures& holder : holders) {
    const std::uint64_t bytes = at == At::end    ? holder.live_bytes
                                : at == At::peak ? holder.peak_bytes
                                                 : holder.total_bytes;
    const std::uint64_t count = at == At::end    ? holder.live_count
                                : at == At::peak ? holder.peak_count
                                                 : holder.total_count;
    if (bytes == 0 && count == 0) continue;
    rows.push_back({stacks.of_node(holder.node), holder.space, holder.estimated, bytes, count});
  }
  rows = grouped(rows, [](StackId stack) { return stack; });
  // The largest first: each group is shown by the one that held most.
  return grouped(rows, [&](StackId stack) { return stacks.without_interpreter(stack); });
}

}  // namespace oomrec::tools

#include "tools/recording/analysis/stacks.h"

#include <algorithm>
#include <array>

namespace oomrec::tools::recording {
namespace {

void sort_by_bytes(std::vector<StackFigures>& rows) {
  std::sort(rows.begin(), rows.end(), [](const StackFigures& a, const StackFigures& b) {
    return a.bytes != b.bytes ? a.bytes > b.bytes : a.stack < b.stack;
  });
}

// One row for all of a space whose `group_of(stack)` is the same, in no order, with the stack of
// the row that has most bytes. Groups are stacks of `stacks`, too.
template <class GroupOf>
std::vector<StackFigures> grouped(const std::vector<StackFigures>& rows, const Stacks& stacks,
                                  GroupOf group_of) {
  struct Group {
    std::uint32_t row = 0;  // 1 + its index in `groups`; 0: none yet
    std::uint64_t most_bytes = 0;
  };
  std::vector<StackFigures> groups;
  std::array<std::vector<Group>, kSpaceCount> known;  // by group; empty where a space has none
  for (const StackFigures& row : rows) {
    std::vector<Group>& of_space = known[static_cast<std::size_t>(row.space)];
    if (of_space.empty()) of_space.resize(stacks.size());
    Group& group = of_space[group_of(row.stack)];
    if (group.row == 0) {
      groups.push_back(row);
      group = {static_cast<std::uint32_t>(groups.size()), row.bytes};
      continue;
    }
    StackFigures& sum = groups[group.row - 1];
    sum.bytes += row.bytes;
    sum.count += row.count;
    sum.estimated = sum.estimated || row.estimated;
    if (row.bytes > group.most_bytes || (row.bytes == group.most_bytes && row.stack < sum.stack)) {
      group.most_bytes = row.bytes;
      sum.stack = row.stack;
    }
  }
  return groups;
}

}  // namespace

Stacks::Stacks(const Recording& recording, Places& places)
    : recording_(recording),
      places_(places),
      entries_{{0, 0, 0, 0, 0, false}},
      of_node_(recording.view().count(session::TableId::nodes)),
      known_(of_node_.size()) {
  entries_.reserve(of_node_.size());  // most nodes are one stack: not copied as it grows
}

StackId Stacks::new_child(StackId parent, PlaceId place) {
  const auto stack = static_cast<StackId>(entries_.size());
  const bool python = places_[place].kind == Place::Kind::python;
  entries_.push_back({parent, place, stack, 0, 0, entries_[parent].runs_python || python});
  return stack;
}

StackId Stacks::child(StackId parent, PlaceId place) {
  StackId stack = 0;
  StackId last = 0;
  unsigned listed = 0;
  for (StackId at = entries_[parent].first_child; at != 0; at = entries_[at].next_sibling) {
    if (entries_[at].place == place) return at;
    last = at;
    ++listed;
  }
  if (listed == kListed) {
    const std::uint64_t key = std::uint64_t{parent} << 32 | place;
    const auto [at, is_new] = unlisted_.try_emplace(key, static_cast<StackId>(entries_.size()));
    if (!is_new) return at->second;
    stack = new_child(parent, place);
  } else {
    stack = new_child(parent, place);
    (last == 0 ? entries_[parent].first_child : entries_[last].next_sibling) = stack;
  }
  // At most one call deep: the stack it is made in has no such frames, so the new one is its own.
  const StackId outer = entries_[parent].without_interpreter;
  if (places_[place].interpreter) {
    entries_[stack].without_interpreter = outer;
  } else if (outer != parent) {
    const StackId shorter = child(outer, place);
    entries_[stack].without_interpreter = shorter;
  }
  return stack;
}

StackId Stacks::without_interpreter(StackId stack) const {
  return entries_[stack].runs_python ? entries_[stack].without_interpreter : stack;
}

// A session that is written on has more nodes than when it was opened.
bool Stacks::is_there(std::uint32_t node) {
  if (node < known_.size()) return true;
  const std::uint64_t nodes = recording_.view().count(session::TableId::nodes);
  if (node >= nodes) return false;
  of_node_.resize(nodes);
  known_.resize(nodes);
  return true;
}

StackId Stacks::of_node(std::uint32_t node) {
  // Outwards to a node that is known, then back in.
  unknown_.clear();
  session::Node entry{};
  StackId stack = 0;
  while (node != 0 && is_there(node)) {
    if (known_[node]) {
      stack = of_node_[node];
      break;
    }
    if (!recording_.view().read(session::TableId::nodes, node, entry)) break;
    unknown_.emplace_back(node, entry.frame);
    if (entry.parent >= node) break;  // forged: parents are always older
    node = entry.parent;
  }
  for (auto at = unknown_.rbegin(); at != unknown_.rend(); ++at) {
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
  rows = grouped(rows, stacks, [](StackId stack) { return stack; });
  // Each group is shown by the one that held most.
  rows = grouped(rows, stacks, [&](StackId stack) { return stacks.without_interpreter(stack); });
  sort_by_bytes(rows);
  return rows;
}

}  // namespace oomrec::tools::recording

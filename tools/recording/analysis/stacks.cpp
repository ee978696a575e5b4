#include "tools/recording/analysis/stacks.h"

#include <algorithm>
#include <array>
#include <limits>

#include "common/names/library_functions.h"
#include "common/session/recursion.h"
#include "common/system/units.h"
#include "tools/recording/reading/recording.h"
#include "tools/recording/symbolize/function_name.h"

namespace oomrec::tools::recording {
namespace {

void sort_by_bytes(std::vector<StackFigures>& rows) {
  std::ranges::sort(rows, [](const StackFigures& a, const StackFigures& b) {
    return a.bytes != b.bytes ? a.bytes > b.bytes : a.stack < b.stack;
  });
}

void add_resident(StackFigures& sum, const StackFigures& row) {
  sum.live_bytes += row.live_bytes;
  if (sum.resident_bytes) *sum.resident_bytes += row.resident_bytes.value_or(row.live_bytes);
}

// Sums the rows of each space that have the same `group_of(stack)`, which is a stack, too. A sum
// takes the stack of its largest row. Unsorted.
template <class GroupOf>
std::vector<StackFigures> grouped(const std::vector<StackFigures>& rows, const Stacks& stacks,
                                  GroupOf group_of) {
  struct Group {
    std::uint32_t row = 0;  // 1 + its index in `groups`; 0: none yet
    std::uint64_t most_bytes = 0;
  };
  std::vector<StackFigures> groups;
  std::array<std::vector<Group>, kSpaceCount> group_index;  // by space, then by stack
  for (const StackFigures& row : rows) {
    std::vector<Group>& of_space = group_index[static_cast<std::size_t>(row.space)];
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
    add_resident(sum, row);
    sum.estimated = sum.estimated || row.estimated;
    sum.depths += row.depths;
    if (row.bytes > group.most_bytes || (row.bytes == group.most_bytes && row.stack < sum.stack)) {
      group.most_bytes = row.bytes;
      sum.stack = row.stack;
    }
  }
  return groups;
}

}  // namespace

Frames frames_named(std::string_view name) {
  return value_named<Frames>(kFramesNames, name).value_or(Frames::both);
}

Frames frames_of(const Recording& recording, std::string_view asked) {
  const bool is_python = recording.header().python.version_hex != 0;
  return asked.empty() && is_python ? Frames::python : frames_named(asked);
}

Stacks::Stacks(const Recording& recording, Locations& locations, Frames frames)
    : recording_(recording),
      locations_(locations),
      frames_(frames),
      entries_{{0, 0, 0, 0, 0, false}},
      of_node_(recording.view().count(session::TableId::nodes)),
      is_cached_(of_node_.size()) {
  entries_.reserve(of_node_.size());  // most nodes become one stack: avoids reallocation
}

StackId Stacks::new_child(StackId parent, LocationId location) {
  const auto stack = static_cast<StackId>(entries_.size());
  const bool script = locations_[location].is_script();
  entries_.push_back({parent, location, stack, 0, 0, entries_[parent].runs_script || script});
  return stack;
}

StackId Stacks::child(StackId parent, LocationId location) {
  StackId stack = 0;
  StackId last = 0;
  unsigned listed = 0;
  for (StackId at = entries_[parent].first_child; at != 0; at = entries_[at].next_sibling) {
    if (entries_[at].location == location) return at;
    last = at;
    ++listed;
  }
  if (listed == kListed) {
    const std::uint64_t key = std::uint64_t{parent} << 32 | location;
    const auto [at, is_new] = unlisted_.try_emplace(key, static_cast<StackId>(entries_.size()));
    if (!is_new) return at->second;
    stack = new_child(parent, location);
  } else {
    stack = new_child(parent, location);
    (last == 0 ? entries_[parent].first_child : entries_[last].next_sibling) = stack;
  }
  // The recursion is at most one call deep: `outer` is reduced, so it is its own shorter stack.
  const StackId outer = entries_[parent].reduced;
  if (is_left_out(location)) {
    entries_[stack].reduced = outer;
  } else if (outer != parent) {
    const StackId shorter = child(outer, location);
    entries_[stack].reduced = shorter;
  }
  return stack;
}

bool counts(const Location& location, const Locations& locations, Frames frames) {
  if (location.kind == Location::Kind::note) return true;
  const bool is_python = location.kind == Location::Kind::python;
  switch (frames) {
    case Frames::both:
      return !location.interpreter;
    case Frames::python:
      return is_python ? !is_import_machinery(location) : is_own_function(location, locations);
    case Frames::native:
      return !is_python;
  }
  return true;
}

bool Stacks::is_left_out(LocationId id) {
  if (kept_.size() <= id) kept_.resize(locations_.size(), Kept::unknown);
  if (kept_[id] == Kept::unknown)
    kept_[id] = counts(locations_[id], locations_, frames_) ? Kept::kept : Kept::left_out;
  return kept_[id] == Kept::left_out;
}

StackId Stacks::reduced(StackId stack) const {
  const Entry& entry = entries_[stack];
  return entry.runs_script && entry.reduced != 0 ? entry.reduced : stack;
}

// Functions without a name of their own are known by their location: two lambdas of a file are not
// one.
std::uint32_t Stacks::function_of(LocationId id) {
  if (functions_.size() <= id) functions_.resize(locations_.size());
  std::uint32_t& number = functions_[id];
  if (number != 0) return number;
  const Location& location = locations_[id];
  const bool script = location.is_script();
  const bool is_named = location.kind != Location::Kind::note && !location.function.empty() &&
                        !(script && location.function.back() == '>');
  std::string name = is_named ? location.function + '\n' +
                                    (script ? location.file : std::to_string(location.names))
                              : std::to_string(id);
  const auto next = static_cast<std::uint32_t>(function_numbers_.size() + 1);
  return number = function_numbers_.try_emplace(std::move(name), next).first->second;
}

// If the stack's innermost functions are those before them once more, leaves out the earlier ones.
StackId Stacks::without_last_cycle(StackId stack) {
  std::array<StackId, 2 * session::kLongestCycle + 1> outwards{};
  unsigned known = 0;
  const auto outer = [&](unsigned steps) {
    for (; known <= steps; ++known)
      outwards[known] = known == 0 ? stack : entries_[outwards[known - 1]].parent;
    return outwards[steps];
  };
  const unsigned length = session::last_cycle([&](unsigned inner, unsigned earlier) {
    return outer(earlier) != 0 && function_of(entries_[outer(inner)].location) ==
                                      function_of(entries_[outer(earlier)].location);
  });
  if (length == 0) return stack;
  StackId shorter = outer(2 * length);
  for (unsigned at = length; at-- != 0;) shorter = child(shorter, entries_[outer(at)].location);
  return shorter;
}

StackId Stacks::without_recursion(StackId stack) {
  stack = reduced(stack);
  std::vector<StackId> inner;  // those that are not known yet, the innermost first
  for (; stack != 0; stack = entries_[stack].parent) {
    if (without_recursion_.size() <= stack) without_recursion_.resize(entries_.size());
    if (without_recursion_[stack] != 0) break;
    inner.push_back(stack);
  }
  StackId result = stack == 0 ? 0 : without_recursion_[stack];
  for (auto at = inner.rbegin(); at != inner.rend(); ++at) {
    const Entry entry = entries_[*at];
    result = without_last_cycle(result == entry.parent ? *at : child(result, entry.location));
    without_recursion_[*at] = result;
  }
  return result;
}

// A live session gains nodes after it was opened: the cache grows with it.
bool Stacks::has_node(std::uint32_t node) {
  if (node < is_cached_.size()) return true;
  const std::uint64_t nodes = recording_.view().count(session::TableId::nodes);
  if (node >= nodes) return false;
  of_node_.resize(nodes);
  is_cached_.resize(nodes);
  return true;
}

void Stacks::forget_numbers() {
  is_cached_.assign(is_cached_.size(), false);
  locations_.forget_numbers();
}

StackId Stacks::managed_heap_of(StackId stack) {
  constexpr int kMostBetween = 2;
  const auto function = [&](StackId at) -> const std::string& {
    return locations_[entries_[at].location].function;
  };
  if (!names::commits_for_managed_heap(function(stack))) return 0;
  StackId outer = entries_[stack].parent;
  auto found = names::ManagedHeap::none;
  for (int left = kMostBetween; outer != 0; --left, outer = entries_[outer].parent) {
    found = names::managed_heap_of(function(outer));
    if (found != names::ManagedHeap::none || left == 0) break;
  }
  if (found == names::ManagedHeap::none) return 0;
  std::vector<LocationId> labels;
  for (; outer != 0; outer = entries_[outer].parent)
    if (locations_[entries_[outer].location].label) labels.push_back(entries_[outer].location);
  StackId heap = 0;
  for (auto label = labels.rbegin(); label != labels.rend(); ++label) heap = child(heap, *label);
  return child(heap, locations_.managed_heap(found));
}

StackId Stacks::of_node(std::uint32_t node) {
  // Outwards to a cached node, then back in.
  missing_.clear();
  session::Node entry{};
  StackId stack = 0;
  while (node != 0 && has_node(node)) {
    if (is_cached_[node]) {
      stack = of_node_[node];
      break;
    }
    if (!recording_.view().read(session::TableId::nodes, node, entry)) break;
    missing_.emplace_back(node, entry.frame);
    if (entry.parent >= node) break;  // forged: a parent always has a lower number
    node = entry.parent;
  }
  for (auto at = missing_.rbegin(); at != missing_.rend(); ++at) {
    const std::vector<LocationId>& frame = locations_.of_frame(at->second);
    for (auto location = frame.rbegin(); location != frame.rend(); ++location) {
      if (heaps_.contains(stack)) break;
      stack = child(stack, *location);
      if (const StackId heap = managed_heap_of(stack)) heaps_.insert(stack = heap);
    }
    of_node_[at->first] = stack;
    is_cached_[at->first] = true;
  }
  return stack;
}

std::vector<LocationId> Stacks::locations(StackId stack) const {
  constexpr std::size_t kMostlyEnough = 128;
  std::vector<LocationId> locations;
  locations.reserve(kMostlyEnough);
  for (; stack != 0; stack = entries_[stack].parent) locations.push_back(entries_[stack].location);
  return locations;
}

std::vector<StackFigures> merged(const std::vector<HolderFigures>& holders, Stacks& stacks, At at,
                                 Recursion recursion) {
  std::vector<StackFigures> rows;
  for (const HolderFigures& holder : holders) {
    const std::uint64_t bytes = at == At::end    ? holder.weight_bytes()
                                : at == At::peak ? holder.peak_bytes
                                                 : holder.total_bytes;
    const std::uint64_t count = at == At::end    ? holder.live_count
                                : at == At::peak ? holder.peak_count
                                                 : holder.total_count;
    if (bytes == 0 && count == 0) continue;
    rows.push_back({stacks.of_node(holder.node), holder.space, holder.estimated, bytes, count,
                    at == At::end ? holder.live_bytes : bytes,
                    at == At::end ? holder.resident_bytes : std::nullopt});
  }
  rows = grouped(rows, stacks, [](StackId stack) { return stack; });
  // Of stacks that differ only in the frames left out, the largest represents the group.
  rows = grouped(rows, stacks, [&](StackId stack) { return stacks.reduced(stack); });
  for (StackFigures& row : rows) row.depths = 1;
  if (recursion == Recursion::collapsed) {
    for (const StackFigures& row : rows)
      stacks.without_recursion(row.stack);  // all that there will be
    rows = grouped(rows, stacks, [&](StackId stack) { return stacks.without_recursion(stack); });
  }
  sort_by_bytes(rows);
  return rows;
}

std::vector<StackSum> summed_over_spaces(const std::vector<StackFigures>& rows, Stacks& stacks) {
  std::vector<StackSum> sums;
  std::unordered_map<StackId, std::size_t> sum_of;
  for (const StackFigures& row : rows) {
    const auto [at, is_new] = sum_of.try_emplace(stacks.without_recursion(row.stack), sums.size());
    if (is_new) {
      sums.push_back({row, {row.space}});
      continue;
    }
    StackSum& sum = sums[at->second];
    sum.figures.bytes += row.bytes;
    sum.figures.count += row.count;
    add_resident(sum.figures, row);
    sum.figures.estimated = sum.figures.estimated || row.estimated;
    sum.figures.depths = std::max(sum.figures.depths, row.depths);
    sum.spaces.push_back(row.space);
  }
  std::ranges::stable_sort(
      sums, [](const StackSum& a, const StackSum& b) { return a.figures.bytes > b.figures.bytes; });
  return sums;
}

namespace {

using session::TableId;

constexpr std::uint32_t kNoBirth = std::numeric_limits<std::uint32_t>::max();

// The earliest birth of each entry's blocks, in seconds since the start of the session.
class Births {
 public:
  explicit Births(std::uint64_t count) : earliest_(count, kNoBirth) {}

  void add(std::uint32_t entry, std::uint32_t birth_s) {
    if (entry < earliest_.size()) earliest_[entry] = std::min(earliest_[entry], birth_s);
  }
  std::uint32_t of(std::uint32_t entry) const {
    return entry < earliest_.size() ? earliest_[entry] : kNoBirth;
  }

 private:
  std::vector<std::uint32_t> earliest_;
};

}  // namespace

void Recording::add_ages(std::vector<HolderFigures>& rows) const {
  Births by_holder{view_.count(TableId::holders)};
  Births by_node{view_.count(TableId::nodes)};  // small blocks, which are all on the heap
  for (const auto& block : session::entries<session::LiveBlock>(view_, TableId::live_blocks))
    if (block.address != 0) by_holder.add(block.holder, block.birth_s);
  for (const auto& range : session::entries<session::LiveRange>(view_, TableId::live_ranges)) {
    const bool counted = range.kind == static_cast<std::uint32_t>(session::RangeKind::counted);
    if (range.start != 0 && counted) by_holder.add(range.holder, range.birth_s);
  }
  for (const auto& block : session::entries<session::DeviceBlock>(view_, TableId::device_blocks))
    if (block.key != 0 && (block.flags & session::kDeviceDormant) == 0)
      by_holder.add(block.holder, block.birth_s);
  for (std::uint64_t page = 1; page < view_.count(TableId::side_pages); ++page) {
    view_.for_each_small_block(
        page, [&](const session::SmallBlock& block) { by_node.add(block.node, block.birth_s); });
  }
  for (HolderFigures& row : rows) {
    std::uint32_t birth_s = by_holder.of(row.entry);
    if (row.space == Space::heap) birth_s = std::min(birth_s, by_node.of(row.node));
    if (row.live_bytes == 0 || birth_s == kNoBirth) continue;
    row.oldest_ns = header().start_monotonic_ns + birth_s * kSecondNs;
  }
}

}  // namespace oomrec::tools::recording

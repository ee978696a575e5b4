#include "tools/recording/analysis/call_tree.h"

#include <algorithm>
#include <span>

namespace oomrec::tools::recording {
namespace {

struct Sum {
  std::uint64_t bytes = 0;
  std::uint64_t count = 0;
};

// Common to both trees: which children are shown, and their order.
class Builder {
 public:
  Builder(const Stacks& stacks, const TreeBounds& bounds, std::uint64_t root_bytes)
      : stacks_(stacks),
        max_depth_(bounds.max_depth),
        min_bytes_(bounds.min_share * static_cast<double>(root_bytes)) {}

 protected:
  // Returns the new child; nullptr if it is too small, or empty.
  TreeNode* add_child(TreeNode& parent, LocationId location, const Sum& sum) const {
    if (sum.bytes == 0) return nullptr;
    if (static_cast<double>(sum.bytes) < min_bytes_) {
      parent.small_bytes += sum.bytes;
      ++parent.small_children;
      return nullptr;
    }
    TreeNode& node = parent.children.emplace_back();
    node.location = location;
    node.bytes = sum.bytes;
    node.count = sum.count;
    return &node;
  }

  static void sort_children(TreeNode& parent) {
    std::ranges::sort(parent.children, [](const TreeNode& a, const TreeNode& b) {
      return a.bytes != b.bytes ? a.bytes > b.bytes : a.location < b.location;
    });
  }

  const Stacks& stacks_;
  const unsigned max_depth_;
  const double min_bytes_;
};

// From the allocating function outwards. All stacks advance together, one frame a level, and split
// into groups by location.
class Inverted : Builder {
 public:
  // The rest of a stack, from the current frame outwards.
  struct Cursor {
    StackId stack;
    Sum sum;
    StackId whole;
  };

  Inverted(const Stacks& stacks, const Locations& locations, const TreeBounds& bounds,
           std::uint64_t root_bytes, std::size_t cursors)
      : Builder(stacks, bounds, root_bytes), group_of_(locations.size()), scratch_(cursors) {}

  // Adds the children of the node at `depth` that `cursors` have reached. Reorders and advances
  // `cursors`.
  void add_children(TreeNode& parent, std::span<Cursor> cursors, unsigned depth) {
    const auto ended = std::partition(cursors.begin(), cursors.end(),
                                      [](const Cursor& cursor) { return cursor.stack != 0; });
    cursors = {cursors.begin(), ended};
    if (depth >= max_depth_) {
      parent.is_cut = !cursors.empty();
      return;
    }
    const std::vector<Group> groups = group_by_location(cursors);
    parent.children.reserve(groups.size());
    for (const Group& group : groups) {
      TreeNode* const node = add_child(parent, group.location, group.sum);
      if (node == nullptr) continue;
      const std::span<Cursor> inside = cursors.subspan(group.begin, group.size);
      if (depth == 0) node->largest = largest_of(inside);
      for (Cursor& cursor : inside) cursor.stack = stacks_.parent(cursor.stack);
      add_children(*node, inside, depth + 1);
    }
    sort_children(parent);
  }

 private:
  static StackId largest_of(std::span<const Cursor> cursors) {
    return std::ranges::max_element(
               cursors, [](const Cursor& a, const Cursor& b) { return a.sum.bytes < b.sum.bytes; })
        ->whole;
  }

  struct Group {
    LocationId location;
    Sum sum;
    std::size_t size;
    std::size_t begin;
  };

  // Sorts the cursors by their location: a counting sort, without comparisons.
  std::vector<Group> group_by_location(std::span<Cursor> cursors) {
    std::vector<Group> groups;
    for (const Cursor& cursor : cursors) {
      const LocationId location = stacks_.innermost(cursor.stack);
      std::uint32_t& number = group_of_[location];
      if (number == 0) {
        groups.push_back({location, {}, 0, 0});
        number = static_cast<std::uint32_t>(groups.size());
      }
      Group& group = groups[number - 1];
      group.sum.bytes += cursor.sum.bytes;
      group.sum.count += cursor.sum.count;
      ++group.size;
    }
    std::vector<std::size_t> next;
    next.reserve(groups.size());
    std::size_t begin = 0;
    for (Group& group : groups) {
      group.begin = begin;
      next.push_back(begin);
      begin += group.size;
    }
    if (groups.size() > 1) {
      for (const Cursor& cursor : cursors) {
        scratch_[next[group_of_[stacks_.innermost(cursor.stack)] - 1]++] = cursor;
      }
      std::copy_n(scratch_.begin(), cursors.size(), cursors.begin());
    }
    for (const Group& group : groups) group_of_[group.location] = 0;
    return groups;
  }

  std::vector<std::uint32_t> group_of_;  // by location: 1 + index of its group; 0: none
  std::vector<Cursor> scratch_;
};

// From the outermost caller inwards: the stacks already form that tree.
class TopDown : Builder {
 public:
  TopDown(const Stacks& stacks, const TreeBounds& bounds, std::uint64_t root_bytes,
          const std::vector<StackFigures>& rows)
      : Builder(stacks, bounds, root_bytes),
        sums_(stacks.size()),
        first_(stacks.size()),
        next_(stacks.size()) {
    for (const StackFigures& row : rows) add(stacks.reduced(row.stack), row);
    for (auto stack = static_cast<StackId>(sums_.size() - 1); stack > 0; --stack) {
      if (sums_[stack].bytes == 0) continue;
      const StackId parent = stacks.parent(stack);
      sums_[parent].bytes += sums_[stack].bytes;
      sums_[parent].count += sums_[stack].count;
      next_[stack] = first_[parent];
      first_[parent] = stack;
    }
  }

  void add_children(TreeNode& parent, StackId stack, unsigned depth) const {
    if (depth >= max_depth_) {
      parent.is_cut = first_[stack] != 0;
      return;
    }
    for (StackId callee = first_[stack]; callee != 0; callee = next_[callee]) {
      TreeNode* const node = add_child(parent, stacks_.innermost(callee), sums_[callee]);
      if (node != nullptr) add_children(*node, callee, depth + 1);
    }
    sort_children(parent);
  }

 private:
  void add(StackId stack, const StackFigures& row) {
    sums_[stack].bytes += row.bytes;
    sums_[stack].count += row.count;
  }

  std::vector<Sum> sums_;       // by stack, including its callees
  std::vector<StackId> first_;  // by stack: its first callee; 0: none
  std::vector<StackId> next_;   // by stack: the next callee of the same caller
};

}  // namespace

TreeNode call_tree(const std::vector<StackFigures>& rows, const Stacks& stacks,
                   const Locations& locations, const TreeBounds& bounds) {
  TreeNode root;
  for (const StackFigures& row : rows) {
    root.bytes += row.bytes;
    root.count += row.count;
  }
  if (bounds.top_down) {
    TopDown{stacks, bounds, root.bytes, rows}.add_children(root, 0, 0);
    return root;
  }
  std::vector<Inverted::Cursor> cursors;
  cursors.reserve(rows.size());
  for (const StackFigures& row : rows) {
    cursors.push_back({stacks.reduced(row.stack), {row.bytes, row.count}, row.stack});
  }
  Inverted{stacks, locations, bounds, root.bytes, cursors.size()}.add_children(root, cursors, 0);
  return root;
}

}  // namespace oomrec::tools::recording

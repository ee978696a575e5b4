#include "tools/analysis/call_tree.h"

#include <algorithm>

namespace oomrec::tools {
namespace {

// A stack on its way through the tree: the frames in [0, next) are behind it.
struct Cursor {
  const std::vector<PlaceId>* frames;
  std::uint64_t bytes;
  std::uint64_t count;
};

class Builder {
 public:
  Builder(const TreeBounds& bounds, std::uint64_t root_bytes)
      : bounds_(bounds), least_(bounds.min_share * static_cast<double>(root_bytes)) {}

  // Adds the children of a node at `depth`, whose stacks are `cursors`.
  void add_children(TreeNode& parent, std::vector<Cursor>& cursors, unsigned depth) const {
    std::erase_if(cursors, [&](const Cursor& cursor) { return cursor.frames->size() <= depth; });
    if (depth >= bounds_.max_depth) {
      parent.is_cut = !cursors.empty();
      return;
    }
    std::sort(cursors.begin(), cursors.end(), [&](const Cursor& a, const Cursor& b) {
      return (*a.frames)[depth] < (*b.frames)[depth];
    });
    for (auto begin = cursors.begin(); begin != cursors.end();) {
      const PlaceId place = (*begin->frames)[depth];
      const auto end = std::find_if(begin, cursors.end(), [&](const Cursor& cursor) {
        return (*cursor.frames)[depth] != place;
      });
      TreeNode node;
      node.place = place;
      for (auto cursor = begin; cursor != end; ++cursor) {
        node.bytes += cursor->bytes;
        node.count += cursor->count;
      }
      if (static_cast<double>(node.bytes) >= least_ && node.bytes != 0) {
        std::vector<Cursor> inside(begin, end);
        add_children(node, inside, depth + 1);
        parent.children.push_back(std::move(node));
      } else if (node.bytes != 0) {
        parent.small_bytes += node.bytes;
        ++parent.small_children;
      }
      begin = end;
    }
    std::sort(parent.children.begin(), parent.children.end(),
              [](const TreeNode& a, const TreeNode& b) {
                return a.bytes != b.bytes ? a.bytes > b.bytes : a.place < b.place;
              });
  }

 private:
  const TreeBounds& bounds_;
  const double least_;
};

}  // namespace

TreeNode call_tree(const std::vector<StackFigures>& rows, const Stacks& stacks,
                   const TreeBounds& bounds) {
  TreeNode root;
  std::vector<std::vector<PlaceId>> frames;
  frames.reserve(rows.size());
  std::vector<Cursor> cursors;
  cursors.reserve(rows.size());
  for (const StackFigures& row : rows) {
    root.bytes += row.bytes;
    root.count += row.count;
    frames.push_back(stacks.places(stacks.without_interpreter(row.stack)));
    if (bounds.top_down) std::reverse(frames.back().begin(), frames.back().end());
    cursors.push_back({&frames.back(), row.bytes, row.count});
  }
  Builder{bounds, root.bytes}.add_children(root, cursors, 0);
  return root;
}

}  // namespace oomrec::tools

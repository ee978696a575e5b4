// A call tree over what stacks held: inverted (from who allocated to who called it) or top-down.
// Where Python code runs, the interpreter's own functions are no nodes: see stacks.h.
#pragma once

#include <cstdint>
#include <vector>

#include "tools/recording/analysis/stacks.h"

namespace oomrec::tools::recording {

struct TreeNode {
  PlaceId place = 0;  // 0: the root
  std::uint64_t bytes = 0;
  std::uint64_t count = 0;
  std::vector<TreeNode> children;  // the largest first
  // Children that were left out because they are small.
  std::uint64_t small_bytes = 0;
  std::uint64_t small_children = 0;
  bool is_cut = false;  // there were children, too deep
};

struct TreeBounds {
  unsigned max_depth = 512;
  double min_share = 0;  // of the root's bytes; smaller branches are left out
  bool top_down = false;
};

// Only branches within the bounds are ever built, so that the cost is that of what is shown.
TreeNode call_tree(const std::vector<StackFigures>& rows, const Stacks& stacks,
                   const Places& places, const TreeBounds& bounds);

}  // namespace oomrec::tools::recording

// A call tree of holders: inverted (from the allocating function to its callers) or top-down. The
// stacks are reduced: see stacks.h.
#pragma once

#include <cstdint>
#include <vector>

#include "tools/recording/analysis/stacks.h"

namespace oomrec::tools::recording {

struct TreeNode {
  LocationId location = 0;  // 0: the root
  std::uint64_t bytes = 0;
  std::uint64_t count = 0;
  std::vector<TreeNode> children;  // largest first
  // Of an inverted tree's innermost frame: the whole stack of its largest holder. Else 0.
  StackId largest = 0;
  // Children that were left out because they are too small.
  std::uint64_t small_bytes = 0;
  std::uint64_t small_children = 0;
  bool is_cut = false;  // at max_depth: its children were left out
};

struct TreeBounds {
  unsigned max_depth = 512;
  double min_share = 0;  // of the root's bytes; smaller nodes are left out
  bool top_down = false;
};

// Builds only the nodes within the bounds: the cost is that of what is shown.
TreeNode call_tree(const std::vector<StackFigures>& rows, const Stacks& stacks,
                   const Locations& locations, const TreeBounds& bounds);

}  // namespace oomrec::tools::recording

// The call tree of a recording's holders: printed, as JSON (docs/commands/tree.md) or interactive.
#pragma once

#include <string>

#include "tools/base/json.h"
#include "tools/base/terminal.h"
#include "tools/bundles/store/source.h"
#include "tools/recording/analysis/call_tree.h"
#include "tools/recording/analysis/stacks.h"

namespace oomrec::tools::views {

struct TreeStyle {
  unsigned max_depth = 40;
  double min_percent = 1;
  std::string space = "all";
  std::string device;  // empty: all, and memory on no device
  std::string at;      // "peak" or "end"; empty: sections::moment_of()
  std::string frames;  // one of kFramesNames; empty: recording::frames_of()
  bool top_down = false;
};

class TreePage {
 public:
  // Both must outlive this. Throws Error if the recording has no such device.
  TreePage(const bundles::Source& source, const TreeStyle& style);

  Json json() const;
  void print(const Terminal& terminal) const;
  void browse() const;  // throws Error if there is no terminal; returns when the user quits

 private:
  std::string title() const;

  const bundles::Source& source_;
  const TreeStyle& style_;
  const recording::At at_;
  const recording::Frames frames_;
  recording::Stacks stacks_;
  const recording::TreeNode root_;
};

}  // namespace oomrec::tools::views

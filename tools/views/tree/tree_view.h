// The interactive call tree: opens, closes and searches branches. Independent of the terminal.
#pragma once

#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "tools/recording/analysis/call_tree.h"
#include "tools/recording/analysis/statistics.h"
#include "tools/views/screen/chooser.h"
#include "tools/views/screen/screen.h"

namespace oomrec::tools::views {

class TreeView {
 public:
  // `root` and `locations` must outlive this.
  TreeView(std::string title, const recording::TreeNode& root,
           const recording::Locations& locations);

  // False: the user quits.
  bool key(Key key);

  Picture picture(Size size);

 private:
  // A branch on the screen.
  struct Item {
    const recording::TreeNode* node;
    std::size_t indent;  // levels
    std::size_t parent;  // its index in the items; the item's own index: none
  };

  void update_items();
  void add_items(const recording::TreeNode& node, std::size_t indent,
                 std::optional<std::size_t> parent);
  void open(const recording::TreeNode& node);
  void open_all(const recording::TreeNode& node);
  void close_or_select_parent();
  bool is_open(const recording::TreeNode& node) const { return open_.contains(&node); }
  void find_next();
  const recording::TreeNode* find_in(const recording::TreeNode& node,
                                     const recording::TreeNode* after, bool& passed);
  void select(const recording::TreeNode* node);
  Line line_of(const Item& item) const;
  std::string footer() const;
  void show_help();

  const std::string title_;
  const recording::TreeNode& root_;
  const recording::Locations& locations_;
  std::unordered_set<const recording::TreeNode*> open_;
  std::vector<Item> items_;  // the visible branches
  std::size_t selected_ = 0, first_ = 0;
  std::size_t page_ = 1;          // rows
  Size size_{};                   // of the screen
  std::optional<Prompt> search_;  // while the user types it
  std::optional<Chooser> help_;   // while it is shown
  std::string searched_;          // the last searched text
  bool found_ = true;
};

}  // namespace oomrec::tools::views

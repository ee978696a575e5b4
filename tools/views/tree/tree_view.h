// A call tree to walk in: branches open and close, and are searched. Knows no terminal.
#pragma once

#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "tools/recording/analysis/call_tree.h"
#include "tools/recording/analysis/statistics.h"
#include "tools/views/screen/prompt.h"
#include "tools/views/screen/screen.h"

namespace oomrec::tools::views {

class TreeView {
 public:
  // `title`: what the tree is of. Both must outlive this.
  TreeView(std::string title, const recording::TreeNode& root, const recording::Places& places);

  // False: the user wants to leave.
  bool key(Key key);

  Picture picture(Size size);

 private:
  // A branch on the screen.
  struct Item {
    const recording::TreeNode* node;
    std::size_t indent;  // levels
    std::size_t parent;  // among the items; its own number: none
  };

  void list();  // what is open
  void list(const recording::TreeNode& node, std::size_t indent, std::optional<std::size_t> parent);
  void open(const recording::TreeNode& node, bool all_below);
  void close_or_leave();
  bool is_open(const recording::TreeNode& node) const { return open_.contains(&node); }
  void find_next();
  const recording::TreeNode* find_in(const recording::TreeNode& node,
                                     const recording::TreeNode* after, bool& passed);
  void select(const recording::TreeNode* node);
  Line line_of(const Item& item) const;
  std::string foot() const;

  const std::string title_;
  const recording::TreeNode& root_;
  const recording::Places& places_;
  std::unordered_set<const recording::TreeNode*> open_;
  std::vector<Item> items_;
  std::size_t selected_ = 0, first_ = 0;
  std::size_t page_ = 1;
  std::optional<Prompt> search_;  // while it is typed
  std::string wanted_;            // what was searched last
  bool found_ = true;
};

}  // namespace oomrec::tools::views

// A call tree to walk in: branches open and close, and are searched. Knows no terminal.
#pragma once

#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "tools/analysis/call_tree.h"
#include "tools/analysis/statistics.h"
#include "tools/screen/prompt.h"
#include "tools/screen/screen.h"

namespace oomrec::tools {

class TreeView {
 public:
  // `title`: what the tree is of. Both must outlive this.
  TreeView(std::string title, const TreeNode& root, const Places& places);

  // False: the user wants to leave.
  bool key(Key key);

  Picture picture(Size size);

 private:
  // A branch on the screen.
  struct Item {
    const TreeNode* node;
    std::size_t indent;  // levels
    std::size_t parent;  // among the items; its own number: none
  };

  void list();  // what is open
  void list(const TreeNode& node, std::size_t indent, std::optional<std::size_t> parent);
  void open(const TreeNode& node, bool all_below);
  void close_or_leave();
  bool is_open(const TreeNode& node) const { return open_.contains(&node); }
  void find_next();
  const TreeNode* find_in(const TreeNode& node, const TreeNode* after, bool& passed);
  void select(const TreeNode* node);
  Line line_of(const Item& item) const;
  std::string foot() const;

  const std::string title_;
  const TreeNode& root_;
  const Places& places_;
  std::unordered_set<const TreeNode*> open_;
  std::vector<Item> items_;
  std::size_t selected_ = 0, first_ = 0;
  std::size_t page_ = 1;
  std::optional<Prompt> search_;  // while it is typed
  std::string wanted_;            // what was searched last
  bool found_ = true;
};

}  // namespace oomrec::tools

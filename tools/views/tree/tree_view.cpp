#include "tools/views/tree/tree_view.h"

#include <fmt/format.h>

#include <algorithm>

#include "tools/base/text.h"
#include "tools/recording/stack_text/stack_text.h"
#include "tools/views/screen/picture.h"

namespace oomrec::tools::views {
namespace {

constexpr std::size_t kDeepestIndent = 10;  // levels; a number shows deeper ones

}  // namespace

TreeView::TreeView(std::string title, const recording::TreeNode& root,
                   const recording::Locations& locations)
    : title_(std::move(title)), root_(root), locations_(locations) {
  update_items();
}

void TreeView::update_items() {
  items_.clear();
  add_items(root_, 0, std::nullopt);
}

// An only child is not indented further: a chain of them reads as a stack.
void TreeView::add_items(const recording::TreeNode& node, std::size_t indent,
                         std::optional<std::size_t> parent) {
  for (const recording::TreeNode& child : node.children) {
    const std::size_t at = items_.size();
    items_.push_back({&child, indent, parent.value_or(at)});
    if (is_open(child)) add_items(child, indent + (child.children.size() == 1 ? 0 : 1), at);
  }
}

// Opens the branch, and a chain of only children below it.
void TreeView::open(const recording::TreeNode& node) {
  for (const recording::TreeNode* at = &node; !at->children.empty(); at = &at->children.front()) {
    open_.insert(at);
    if (at->children.size() != 1) break;
  }
}

void TreeView::open_all(const recording::TreeNode& node) {
  open_.insert(&node);
  for (const recording::TreeNode& child : node.children) open_all(child);
}

// Closes the selected branch. If it is closed, selects its parent.
void TreeView::close_or_select_parent() {
  const Item item = items_[selected_];
  if (open_.erase(item.node) != 0) return;
  selected_ = item.parent;
}

void TreeView::select(const recording::TreeNode* node) {
  update_items();
  const auto at = std::ranges::find(items_, node, &Item::node);
  if (at != items_.end()) selected_ = static_cast<std::size_t>(at - items_.begin());
}

// The first branch after `after` that contains the searched text; opens the branches around it.
// `passed`: whether the search is past `after`.
const recording::TreeNode* TreeView::find_in(const recording::TreeNode& node,
                                             const recording::TreeNode* after, bool& passed) {
  for (const recording::TreeNode& child : node.children) {
    const bool here =
        passed && contains_ignoring_case(
                      recording::location_text(locations_[child.location], locations_), searched_);
    passed = passed || &child == after;
    const recording::TreeNode* const found = here ? &child : find_in(child, after, passed);
    if (found == nullptr) continue;
    open_.insert(&node);
    return found;
  }
  return nullptr;
}

// Searches from the selected branch on, then from the top.
void TreeView::find_next() {
  if (searched_.empty() || items_.empty()) return;
  bool passed = false;
  const recording::TreeNode* found = find_in(root_, items_[selected_].node, passed);
  passed = true;
  if (found == nullptr) found = find_in(root_, nullptr, passed);
  found_ = found != nullptr;
  if (found_) select(found);
}

void TreeView::show_help() {
  help_.emplace("keys", std::vector<Line>{
                            Line{"  ↑ ↓     move; also Page Up, Page Down, Home, End"},
                            Line{"  →       open the branch, as far as it has only one"},
                            Line{"  ←       close the branch, or go to its parent"},
                            Line{"  Enter   open or close the branch; also Space"},
                            Line{"  *       open all branches below this one"},
                            Line{"  /       search a function, file or line"},
                            Line{"  n       the next that matches"},
                            Line{"  ?       this page; also h"},
                            Line{"  q       quit"},
                        });
}

bool TreeView::key(Key key) {
  if (help_ && key != Key::interrupt) {
    if (help_->key(key, size_) != Chooser::Answer::choosing) help_.reset();
    return true;
  }
  if (search_) {
    const Prompt::Answer answer = search_->key(key);
    if (answer == Prompt::Answer::accepted) searched_ = search_->text();
    if (answer != Prompt::Answer::editing) search_.reset();
    if (answer == Prompt::Answer::accepted) find_next();
    return true;
  }
  found_ = true;
  if (key == Key::interrupt || character(key) == U'q') return false;
  if (move_by(key, items_.size(), page_, selected_) || items_.empty()) return true;
  const recording::TreeNode& node = *items_[selected_].node;
  if (key == Key::right) {
    open(node);
  } else if (key == Key::left) {
    close_or_select_parent();
  } else if (key == Key::enter || character(key) == U' ') {
    if (open_.erase(&node) == 0) open(node);
  } else if (character(key) == U'*') {
    open_all(node);
  } else if (character(key) == U'/') {
    search_.emplace();
  } else if (character(key) == U'n') {
    find_next();
  } else if (character(key) == U'?' || character(key) == U'h') {
    show_help();
  }
  update_items();
  return true;
}

Line TreeView::line_of(const Item& item) const {
  const recording::TreeNode& node = *item.node;
  const double share = static_cast<double>(node.bytes) / static_cast<double>(root_.bytes);
  Line line{fmt::format("{:>7}  {:>10}  ", percent_text(share), size_text(node.bytes)),
            Colour::yellow};
  const std::size_t indent = std::min(item.indent, kDeepestIndent);
  line.add(std::string(2 * indent, ' '));
  if (indent < item.indent) line.add(fmt::format("({}) ", item.indent), Colour::dim);
  line.add(node.children.empty() ? "  " : is_open(node) ? "▾ " : "▸ ", Colour::bold);
  const recording::Location& location = locations_[node.location];
  const bool own =
      recording::relevance_of(location, locations_) == recording::Relevance::own_python_line;
  line.add(recording::location_text(location, locations_, kColumns),
           own ? Colour::cyan : Colour::plain);
  if (node.small_children != 0 && is_open(node)) {
    line.add(
        fmt::format("  … {}", plural(node.small_children, "smaller branch", "smaller branches")),
        Colour::dim);
  }
  if (node.is_cut) line.add("  …", Colour::dim);
  return line;
}

std::string TreeView::footer() const {
  if (search_) return fmt::format(" search: {}_", printable(search_->text()));
  if (!found_) return fmt::format(" \"{}\" is not in the tree", printable(searched_));
  return " q quit  ? keys  ↑↓ move  → open  ← close  * open all below  / search  n next";
}

Picture TreeView::picture(Size size) {
  size_ = size;
  if (help_) return help_->picture(size);
  page_ = size.rows > 2 ? size.rows - 2 : 1;
  first_ = scrolled_to(selected_, page_, first_);
  Picture picture{Line::bar(" " + title_)};
  for (std::size_t i = first_; i < std::min(items_.size(), first_ + page_); ++i) {
    picture.push_back(line_of(items_[i]));
    picture.back().reversed = i == selected_;
  }
  picture.resize(std::max<std::size_t>(size.rows, 1) - 1);
  picture.push_back(Line::bar(footer()));
  return picture;
}

}  // namespace oomrec::tools::views

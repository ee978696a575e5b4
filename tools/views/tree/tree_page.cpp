#include "tools/views/tree/tree_page.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "tools/base/error.h"
#include "tools/base/text.h"
#include "tools/recording/reading/devices.h"
#include "tools/recording/stack_text/stack_text.h"
#include "tools/sections/holders.h"
#include "tools/sections/notes.h"
#include "tools/views/screen/screen.h"
#include "tools/views/tree/tree_view.h"

namespace oomrec::tools::views {
namespace {

std::vector<recording::HolderFigures> holders_in(const recording::Recording& recording,
                                                 const std::string& space) {
  std::vector<recording::HolderFigures> holders = recording.holders();
  std::erase_if(holders, [&](const recording::HolderFigures& holder) {
    return space == "all" ? !is_additive(holder.space) : name_of(holder.space) != space;
  });
  return holders;
}

std::vector<recording::HolderFigures> holders_on(const recording::Recording& recording,
                                                 const std::string& device) {
  std::vector<std::string> labels;
  for (const recording::DeviceFigures& figures : recording::devices_of(recording, 0)) {
    if (figures.label == device) return recording::holders_on(recording, figures.entry);
    labels.push_back(figures.label);
  }
  throw Error{Exit::bad_input, fmt::format("the recording has no device {}", printable(device)),
              labels.empty() ? "The program used no GPU."
                             : fmt::format("It has {}.", fmt::join(labels, ", "))};
}

recording::TreeNode root_of(const bundles::Source& source, recording::Stacks& stacks,
                            const TreeStyle& style, recording::At at) {
  const recording::Recording& recording = *source.recording;
  const std::vector<recording::HolderFigures> holders = style.device.empty()
                                                            ? holders_in(recording, style.space)
                                                            : holders_on(recording, style.device);
  return recording::call_tree(recording::merged(holders, stacks, at), stacks, *source.locations,
                              {style.max_depth, style.min_percent / 100, style.top_down});
}

Json node_json(const recording::TreeNode& node, const recording::Locations& locations) {
  const recording::Location& location = locations[node.location];
  Json children = Json::array();
  for (const recording::TreeNode& child : node.children)
    children.push_back(node_json(child, locations));
  return {
      {"function", text_or_null(location.function)},
      {"file", text_or_null(location.file)},
      {"line", number_or_null(location.line)},
      {"bytes", node.bytes},
      {"count", node.count},
      {"children", std::move(children)},
  };
}

class Printer {
 public:
  Printer(const recording::TreeNode& root, const bundles::Source& source,
          const recording::Stacks& stacks, recording::Frames frames, const TreeStyle& style,
          const Terminal& terminal)
      : root_(root),
        source_(source),
        stacks_(stacks),
        frames_(frames),
        style_(style),
        terminal_(terminal) {}

  void print(const std::string& title) {
    fmt::print("{}{}\n", terminal_.paint(Colour::bold, size_text(root_.bytes)), title);
    print_children(root_, "");
    std::vector<std::string> notes = sections::notes_of(source_);
    if (root_.bytes != 0) notes.push_back(sections::shares_note(*source_.recording));
    if (left_out_) {
      notes.push_back(
          fmt::format("branches below {} % are left out (--min-percent); … sums up those that "
                      "together reach it",
                      style_.min_percent));
    }
    if (cut_) {
      notes.push_back(fmt::format("branches are cut after {} (--max-depth)",
                                  plural(style_.max_depth, "frame", "frames")));
    }
    if (frames_ == recording::Frames::python)
      notes.emplace_back(
          "in stacks that run Python, native functions and Python's import system are left out: "
          "--frames both");
    sections::print_notes(notes, terminal_);
  }

 private:
  // A chain of only children is not indented further: it reads as a stack.
  void print_children(const recording::TreeNode& node, const std::string& indent) {
    const double share_left_out = share_of(node.small_bytes);
    const bool has_rest_line =
        node.small_children != 0 && share_left_out * 100 >= style_.min_percent;
    left_out_ = left_out_ || node.small_children != 0;
    cut_ = cut_ || node.is_cut;
    for (std::size_t i = 0; i < node.children.size(); ++i) {
      const recording::TreeNode& child = node.children[i];
      const bool alone = node.children.size() == 1 && child.bytes == node.bytes;
      const bool last = i + 1 == node.children.size() && !has_rest_line && !has_own_line(node);
      const std::string text = recording::location_text((*source_.locations)[child.location],
                                                        *source_.locations, columns_after(indent));
      const std::string figures = alone ? std::string(kFiguresColumns, ' ')
                                        : figures_of(child.bytes, share_of(child.bytes));
      print_line(figures, indent, alone ? "" : last ? "└ " : "├ ", text);
      const std::string below = alone ? indent : indent + (last ? "  " : "│ ");
      print_native_part(child, below);
      print_children(child, below);
    }
    if (const std::uint64_t own = own_bytes(node); style_.top_down && has_own_line(node)) {
      print_line(figures_of(own, share_of(own)), indent, has_rest_line ? "├ " : "└ ",
                 "(allocated here)");
    }
    if (has_rest_line) {
      print_line(
          figures_of(node.small_bytes, share_left_out), indent, "└ ",
          fmt::format("… {}", plural(node.small_children, "smaller branch", "smaller branches")));
    }
  }

  // What the innermost line of Python called, of the largest of the stacks that are one row.
  void print_native_part(const recording::TreeNode& node, const std::string& indent) const {
    if (frames_ != recording::Frames::python || node.largest == 0) return;
    const std::string text = recording::native_part_text(stacks_.locations(node.largest),
                                                         *source_.locations, columns_after(indent));
    if (!text.empty()) print_line(std::string(kFiguresColumns, ' '), indent, "  ", text);
  }

  // For a row's text, behind its indent and branch.
  static std::size_t columns_after(const std::string& indent) {
    constexpr std::size_t kBranchColumns = 2;
    const std::size_t all = kColumns - kFiguresColumns - kBranchColumns;
    return all - std::min(all, width(indent));
  }

  void print_line(const std::string& figures, const std::string& indent, std::string_view branch,
                  const std::string& text) const {
    const std::string line =
        fmt::format("{}{}{}", indent.size() > 120 ? "…" : indent, branch, text);
    fmt::print("{}{}\n", terminal_.paint(Colour::yellow, figures),
               clip(line, kColumns - kFiguresColumns));
  }

  // From the outermost caller in: what a function itself allocated, beside its callees.
  static std::uint64_t own_bytes(const recording::TreeNode& node) {
    std::uint64_t below = node.small_bytes;
    for (const recording::TreeNode& child : node.children) below += child.bytes;
    return node.bytes - std::min(node.bytes, below);
  }
  bool has_own_line(const recording::TreeNode& node) const {
    return style_.top_down && !node.children.empty() &&
           share_of(own_bytes(node)) * 100 >= std::max(style_.min_percent, kLeastOwnPercent);
  }
  static constexpr double kLeastOwnPercent = 0.05;  // shown as 0.1 %

  double share_of(std::uint64_t bytes) const {
    return static_cast<double>(bytes) / static_cast<double>(root_.bytes);
  }

  static std::string figures_of(std::uint64_t bytes, double share) {
    return fmt::format("{:>7}  {:>10}  ", percent_text(share), size_text(bytes));
  }
  static constexpr std::size_t kFiguresColumns = 21;

  const recording::TreeNode& root_;
  const bundles::Source& source_;
  const recording::Stacks& stacks_;
  const recording::Frames frames_;
  const TreeStyle& style_;
  const Terminal& terminal_;
  bool left_out_ = false;  // because of --min-percent
  bool cut_ = false;       // because of --max-depth
};

}  // namespace

TreePage::TreePage(const bundles::Source& source, const TreeStyle& style)
    : source_(source),
      style_(style),
      at_(style.device.empty() ? sections::moment_of(source, style.at) : recording::At::end),
      frames_(recording::frames_of(*source.recording, style.frames)),
      stacks_(*source.recording, *source.locations, frames_),
      root_(root_of(source, stacks_, style, at_)) {}

// What follows the size: " in 12 blocks  all spaces, at the end, from …".
std::string TreePage::title() const {
  return fmt::format(" in {}  {}, at the {}{}", plural(root_.count, "block", "blocks"),
                     !style_.device.empty()  ? style_.device
                     : style_.space == "all" ? "all spaces"
                                             : style_.space,
                     name_of(recording::kAtNames, at_),
                     style_.top_down ? ", from the outermost caller in"
                                     : ", from the allocation out to its callers");
}

Json TreePage::json() const {
  return {{"schema_version", 1},
          {"space", style_.space},
          {"device", text_or_null(style_.device)},
          {"at", name_of(recording::kAtNames, at_)},
          {"frames", name_of(recording::kFramesNames, frames_)},
          {"root", node_json(root_, *source_.locations)}};
}

void TreePage::print(const Terminal& terminal) const {
  Printer{root_, source_, stacks_, frames_, style_, terminal}.print(title());
}

void TreePage::browse() const {
  if (!is_screen_possible()) {
    throw Error{Exit::bad_input, "--interactive needs a terminal",
                "Print the tree: leave --interactive out."};
  }
  TreeView view{size_text(root_.bytes) + title(), root_, *source_.locations};
  Screen screen;
  while (true) {
    screen.draw(view.picture(terminal_size()));
    constexpr int kUntilNextDraw_ms = 60'000;
    const Key key = screen.key(kUntilNextDraw_ms);
    if (key == Key::suspend) screen.suspend();
    if (key == Key::end_of_input || !view.key(key)) return;
  }
}

}  // namespace oomrec::tools::views

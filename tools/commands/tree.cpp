// `oomrec tree`: who holds the memory, by caller.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include "tools/base/text.h"
#include "tools/bundles/opening/options.h"
#include "tools/commands/commands.h"
#include "tools/print/notes.h"
#include "tools/recording/analysis/call_tree.h"
#include "tools/recording/reading/devices.h"
#include "tools/recording/stack_text/stack_text.h"
#include "tools/views/tree/tree_view.h"

namespace oomrec::tools::commands {
namespace {

constexpr const char* kExamples =
    "  oomrec tree                              from who allocated out to who called\n"
    "  oomrec tree --top-down --max-depth 8     from main inwards\n"
    "  oomrec tree --at peak --space heap       when the heap was largest\n"
    "  oomrec tree -i                           to walk in: open, close, search\n"
    "  oomrec tree --json --min-percent 5\n";

struct TreeOptions : bundles::ReadOptions {
  unsigned max_depth = 40;
  double min_percent = 1;
  std::string space = "all";
  std::string device;  // empty: all, and what is on none
  std::string at = "end";
  bool top_down = false;
  bool interactive = false;
};

Json node_json(const recording::TreeNode& node, const recording::Places& places) {
  const recording::Place& place = places[node.place];
  Json children = Json::array();
  for (const recording::TreeNode& child : node.children)
    children.push_back(node_json(child, places));
  return {
      {"function", text_or_null(place.function)},
      {"file", text_or_null(place.file)},
      {"line", place.line != 0 ? Json(place.line) : Json(nullptr)},
      {"bytes", node.bytes},
      {"count", node.count},
      {"children", std::move(children)},
  };
}

class Page {
 public:
  Page(const recording::TreeNode& root, const bundles::Source& source, const TreeOptions& options)
      : root_(root), source_(source), options_(options) {}

  // "412.0 MiB in 12 blocks  all spaces, at the end, from …", after the size.
  std::string title() const {
    return fmt::format(" in {}  {}, at the {}{}", plural(root_.count, "block", "blocks"),
                       what_text(), options_.at,
                       options_.top_down ? ", from the outermost caller in"
                                         : ", from who allocated out to the callers");
  }

  void print() {
    fmt::print("{}{}\n", terminal_.paint(Colour::bold, size_text(root_.bytes)), title());
    print_children(root_, "");
    std::vector<std::string> notes = print::notes_of(source_);
    if (root_.bytes != 0) notes.emplace_back(print::kSharesNote);
    if (left_out_) {
      notes.push_back(
          fmt::format("branches below {} % are left out (--min-percent), and named together (…) "
                      "where they come to as much",
                      options_.min_percent));
    }
    if (cut_) {
      notes.push_back(fmt::format("branches are cut after {} (--max-depth)",
                                  plural(options_.max_depth, "frame", "frames")));
    }
    print::print_notes(notes, terminal_);
  }

 private:
  std::string what_text() const {
    if (!options_.device.empty()) return options_.device;
    return options_.space == "all" ? "all spaces" : options_.space;
  }

  // A chain of only children needs no deeper indent: it reads as a stack.
  void print_children(const recording::TreeNode& node, const std::string& lead) {
    const double share_left_out = share_of(node.small_bytes);
    const bool names_left_out =
        node.small_children != 0 && share_left_out * 100 >= options_.min_percent;
    left_out_ = left_out_ || node.small_children != 0;
    cut_ = cut_ || node.is_cut;
    for (std::size_t i = 0; i < node.children.size(); ++i) {
      const recording::TreeNode& child = node.children[i];
      const bool alone = node.children.size() == 1 && child.bytes == node.bytes;
      const bool last = i + 1 == node.children.size() && !names_left_out;
      const std::string text =
          recording::place_text((*source_.places)[child.place], *source_.places);
      const std::string figures = alone ? std::string(kFiguresColumns, ' ')
                                        : figures_of(child.bytes, share_of(child.bytes));
      print_line(figures, lead, alone ? "" : last ? "└ " : "├ ", text);
      print_children(child, alone ? lead : lead + (last ? "  " : "│ "));
    }
    if (names_left_out) {
      print_line(
          figures_of(node.small_bytes, share_left_out), lead, "└ ",
          fmt::format("… {}", plural(node.small_children, "smaller branch", "smaller branches")));
    }
  }

  void print_line(const std::string& figures, const std::string& lead, std::string_view branch,
                  const std::string& text) const {
    const std::string line = fmt::format("{}{}{}", lead.size() > 120 ? "…" : lead, branch, text);
    fmt::print("{}{}\n", terminal_.paint(Colour::yellow, figures),
               clip(line, kColumns - kFiguresColumns));
  }

  double share_of(std::uint64_t bytes) const {
    return static_cast<double>(bytes) / static_cast<double>(root_.bytes);
  }

  static std::string figures_of(std::uint64_t bytes, double share) {
    return fmt::format("{:>7}  {:>10}  ", percent_text(share), size_text(bytes));
  }
  static constexpr std::size_t kFiguresColumns = 21;

  const recording::TreeNode& root_;
  const bundles::Source& source_;
  const TreeOptions& options_;
  const Terminal terminal_{STDOUT_FILENO};
  bool left_out_ = false;  // because of --min-percent
  bool cut_ = false;       // because of --max-depth
};

std::vector<recording::HolderFigures> holders_in(const recording::Recording& recording,
                                                 const std::string& space) {
  std::vector<recording::HolderFigures> holders = recording.holders();
  std::erase_if(holders, [&](const recording::HolderFigures& holder) {
    return space == "all" ? !adds_up(holder.space) : name_of(holder.space) != space;
  });
  return holders;
}

std::vector<recording::HolderFigures> holders_on(const recording::Recording& recording,
                                                 const std::string& device) {
  std::vector<std::string> there;
  for (const recording::DeviceFigures& figures : recording::devices_of(recording, 0)) {
    if (figures.label == device) return recording::holders_on(recording, figures.entry);
    there.push_back(figures.label);
  }
  throw Error{Exit::bad_input, fmt::format("the recording knows no device {}", printable(device)),
              there.empty() ? "The program reached no GPU."
                            : fmt::format("It knows {}.", fmt::join(there, ", "))};
}

void walk_in(views::TreeView view) {
  if (!views::is_screen_possible()) {
    throw Error{Exit::bad_input, "--interactive needs a terminal",
                "Print the tree: leave --interactive out."};
  }
  views::Screen screen;
  while (true) {
    screen.draw(view.picture(views::terminal_size()));
    constexpr int kUntilNextDraw_ms = 60'000;
    const views::Key key = screen.key(kUntilNextDraw_ms);
    if (key == views::Key::suspend) screen.suspend();
    if (key == views::Key::end_of_input || !view.key(key)) return;
  }
}

}  // namespace

int tree_command(const Words& words) {
  Arguments arguments{
      "tree", "[OPTIONS] [BUNDLE]",
      "Inverted call tree: the functions that allocated what is held, and below each "
      "its callers, with their shares. Where Python code runs, the functions of the interpreter "
      "are left out.",
      kExamples};
  TreeOptions options;
  options.add_to(arguments);
  std::vector<std::string> spaces{"all"};
  for (const std::string_view name : kSpaceNames) spaces.emplace_back(name);
  arguments.option("--max-depth", "N", options.max_depth, "at most N frames deep (40)");
  arguments.option("--min-percent", "P", options.min_percent,
                   "leave out branches below P percent (1)");
  arguments.choice("--space", "SPACE", options.space, spaces, "what to count (all: what adds up)");
  arguments.option("--device", "DEVICE", options.device,
                   "only what is held on a GPU: cuda:0, hip:1 (no peak is kept of a device)");
  arguments.choice("--at", "WHEN", options.at, {"peak", "end"},
                   "what was held when the space was largest, or last");
  arguments.flag("--top-down", options.top_down, "from the outermost caller inwards");
  arguments.flag("-i,--interactive", options.interactive,
                 "walk in the tree: branches open and close, and are searched");
  if (!arguments.parse(words)) return code(Exit::shown);

  if (!options.device.empty() && options.at == "peak") {
    throw Error{Exit::bad_input, "no peak is kept of a device",
                "Leave --at out, or name the space: --space cuda --at peak"};
  }

  if (!options.device.empty() && options.space != "all" &&
      !options.device.starts_with(options.space + ":")) {
    throw Error{
        Exit::bad_input,
        fmt::format("nothing of the space {} is on {}", options.space, printable(options.device)),
        "Leave one of --space and --device out."};
  }

  const bundles::Source source = options.open();
  const recording::Recording& recording = *source.recording;
  const std::vector<recording::HolderFigures> holders = options.device.empty()
                                                            ? holders_in(recording, options.space)
                                                            : holders_on(recording, options.device);
  recording::Stacks stacks{*source.recording, *source.places};
  const recording::At at = options.at == "peak" ? recording::At::peak : recording::At::end;
  const recording::TreeBounds bounds{options.max_depth, options.min_percent / 100,
                                     options.top_down};
  const recording::TreeNode root =
      recording::call_tree(recording::merged(holders, stacks, at), stacks, *source.places, bounds);
  if (options.json) {
    print_json({{"schema_version", 1},
                {"space", options.space},
                {"device", text_or_null(options.device)},
                {"at", options.at},
                {"root", node_json(root, *source.places)}});
  } else if (options.interactive) {
    walk_in(views::TreeView{size_text(root.bytes) + Page{root, source, options}.title(), root,
                            *source.places});
  } else {
    Page{root, source, options}.print();
  }
  return code(Exit::shown);
}

}  // namespace oomrec::tools::commands

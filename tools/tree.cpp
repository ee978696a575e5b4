// `oomrec tree`: who holds the memory, by caller.
#include <fmt/format.h>
#include <unistd.h>

#include "tools/analysis/call_tree.h"
#include "tools/bundles/options.h"
#include "tools/bundles/source.h"
#include "tools/commands.h"
#include "tools/print/stack.h"
#include "tools/text.h"

namespace oomrec::tools {
namespace {

constexpr const char* kExamples =
    "  oomrec tree                              from who allocated out to who called\n"
    "  oomrec tree --top-down --max-depth 8     from main inwards\n"
    "  oomrec tree --at peak --space heap       when the heap was largest\n"
    "  oomrec tree --json --min-percent 5\n";

struct TreeOptions : ReadOptions {
  unsigned max_depth = 40;
  double min_percent = 1;
  std::string space = "all";
  std::string at = "end";
  bool top_down = false;
};

Json node_json(const TreeNode& node, const Places& places) {
  const Place& place = places[node.place];
  Json children = Json::array();
  for (const TreeNode& child : node.children) children.push_back(node_json(child, places));
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
  Page(const TreeNode& root, const Places& places) : root_(root), places_(places) {}

  void print(const TreeOptions& options) {
    fmt::print("{} in {}  {}, at the {}{}\n", terminal_.paint(Colour::bold, size_text(root_.bytes)),
               plural(root_.count, "block", "blocks"),
               options.space == "all" ? "all spaces" : options.space, options.at,
               options.top_down ? ", from the outermost caller in"
                                : ", from who allocated out to the callers");
    print_children(root_, "");
  }

 private:
  // A chain of only children needs no deeper indent: it reads as a stack.
  void print_children(const TreeNode& node, const std::string& lead) {
    for (std::size_t i = 0; i < node.children.size(); ++i) {
      const TreeNode& child = node.children[i];
      const bool alone = node.children.size() == 1 && child.bytes == node.bytes;
      const bool last = i + 1 == node.children.size();
      const std::string branch = alone ? "" : last ? "└ " : "├ ";
      const double share = static_cast<double>(child.bytes) / static_cast<double>(root_.bytes);
      const std::string figures =
          fmt::format("{:>7}  {:>10}  ", percent_text(share), size_text(child.bytes));
      const std::string shown_lead = lead.size() > 120 ? "…" : lead;
      const std::string text = place_text(places_[child.place], places_);
      fmt::print(
          "{}{}\n",
          alone ? std::string(figures.size(), ' ') : terminal_.paint(Colour::yellow, figures),
          clip(shown_lead + branch + text, kColumns - figures.size()));
      print_children(child, alone ? lead : lead + (last ? "  " : "│ "));
    }
  }

  const TreeNode& root_;
  const Places& places_;
  const Terminal terminal_{STDOUT_FILENO};
};

}  // namespace

int tree_command(const Words& words) {
  Arguments arguments{
      "tree", "[OPTIONS] [BUNDLE]",
      "Inverted call tree: the functions that allocated what is held, and below each "
      "its callers, with their shares.",
      kExamples};
  TreeOptions options;
  options.add_to(arguments);
  std::vector<std::string> spaces{"all"};
  for (const std::string_view name : kSpaceNames) spaces.emplace_back(name);
  arguments.option("--max-depth", "N", options.max_depth, "at most N frames deep (40)");
  arguments.option("--min-percent", "P", options.min_percent,
                   "leave out branches below P percent (1)");
  arguments.choice("--space", "SPACE", options.space, spaces, "what to count");
  arguments.choice("--at", "WHEN", options.at, {"peak", "end"},
                   "what was held when the space was largest, or last");
  arguments.flag("--top-down", options.top_down, "from the outermost caller inwards");
  if (!arguments.parse(words)) return code(Exit::shown);
  allow_debuginfod(options.debuginfod);

  const Source source = open_source(options.bundle);
  std::vector<HolderFigures> holders = source.recording->holders();
  std::erase_if(holders, [&](const HolderFigures& holder) {
    return options.space != "all" && name_of(holder.space) != options.space;
  });
  Stacks stacks{*source.recording, *source.places};
  const At at = options.at == "peak" ? At::peak : At::end;
  const TreeBounds bounds{options.max_depth, options.min_percent / 100, options.top_down};
  const TreeNode root = call_tree(merged(holders, stacks, at), stacks, bounds);
  if (options.json) {
    print_json({{"schema_version", 1},
                {"space", options.space},
                {"at", options.at},
                {"root", node_json(root, *source.places)}});
  } else {
    Page{root, *source.places}.print(options);
  }
  return code(Exit::shown);
}

}  // namespace oomrec::tools

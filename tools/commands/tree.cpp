// `oomrec tree`: what holds the memory, by caller.
#include <fmt/format.h>
#include <unistd.h>

#include "tools/base/text.h"
#include "tools/bundles/opening/options.h"
#include "tools/commands/commands.h"
#include "tools/views/tree/tree_page.h"

namespace oomrec::tools::commands {
namespace {

constexpr const char* kTreeExamples =
    "  oomrec tree                              from the allocating functions out to their "
    "callers\n"
    "  oomrec tree --top-down --max-depth 8     from main inwards\n"
    "  oomrec tree --at peak --space heap       when the heap was largest\n"
    "  oomrec tree --frames both                Python's lines and the native functions below "
    "them\n"
    "  oomrec tree -i                           interactive: open, close, search branches\n"
    "  oomrec tree --json --min-percent 5\n";

void check(const views::TreeStyle& style) {
  if (!style.device.empty() && style.at == "peak") {
    throw Error{Exit::bad_input, "there is no peak by device",
                "Leave --at out, or name the space: --space cuda --at peak"};
  }
  if (!style.device.empty() && style.space != "all" &&
      !style.device.starts_with(style.space + ":")) {
    throw Error{Exit::bad_input,
                fmt::format("the space {} is not on {}", style.space, printable(style.device)),
                "Leave --space or --device out."};
  }
}

}  // namespace

int tree_command(const Words& words) {
  Arguments arguments{
      "tree", "[OPTIONS] [BUNDLE]",
      "Shows an inverted call tree: the functions that allocated what is held, and below each its "
      "callers, with their shares. Of a program that runs Python, the functions are its lines.",
      kTreeExamples};
  bundles::ReadOptions options;
  views::TreeStyle style;
  bool interactive = false;
  options.add_to(arguments);
  arguments.option("--max-depth", "N", style.max_depth, "at most N frames deep (40)");
  arguments.option("--min-percent", "P", style.min_percent,
                   "leave out branches below P percent (1)");
  arguments.choice("--space", "SPACE", style.space, space_choices(),
                   "which memory to count (all: the spaces that add up)");
  arguments.option("--device", "DEVICE", style.device,
                   "only what is held on this GPU: cuda:0, hip:1 (not with --at peak)");
  arguments.choice("--at", "WHEN", style.at, {"peak", "end"},
                   "at the peak of the space, or at the end (the peak if the program ended without "
                   "a failure)");
  arguments.flag("--top-down", style.top_down, "from the outermost caller inwards");
  arguments.flag("-i,--interactive", interactive,
                 "browse the tree: open, close and search branches");
  add_frames_choice(arguments, style.frames, "python if the program ran it, else both");
  if (!arguments.parse(words)) return code(Exit::shown);
  check(style);

  const bundles::Source source = options.open();
  // A script gets every frame, whatever the program was.
  if (options.json && style.frames.empty())
    style.frames = name_of(recording::kFramesNames, recording::Frames::both);
  const views::TreePage page{source, style};
  if (options.json) {
    print_json(page.json());
  } else if (interactive) {
    page.browse();
  } else {
    page.print(Terminal{STDOUT_FILENO});
  }
  return code(Exit::shown);
}

}  // namespace oomrec::tools::commands

// `oomrec show`: why a bundle was written, the failed request, what held the memory, and how the
// process ended.
#include <unistd.h>

#include "tools/bundles/opening/options.h"
#include "tools/commands/commands.h"
#include "tools/views/show/show.h"

namespace oomrec::tools::commands {
namespace {

constexpr const char* kShowExamples =
    "  oomrec show                                      the newest bundle\n"
    "  oomrec show oom_dumps/oom_cpu_20261121_101530_001\n"
    "  oomrec show oom_dumps                            the ranks of a job, if their bundles are "
    "in it\n"
    "  oomrec show --full --top 3                       every frame of the three largest holders\n"
    "  oomrec show --at end                             what was left when the program exited\n"
    "  oomrec show --json | jq .verdict\n";

}  // namespace

int show_command(const Words& words) {
  Arguments arguments{
      "show", "[OPTIONS] [BUNDLE]",
      "Shows why a bundle was written: the verdict, the refused request, the limit, what holds the "
      "memory by native and Python call stack, and what happened next.",
      kShowExamples};
  bundles::ReadOptions options;
  views::ShowStyle style;
  options.add_to(arguments);
  arguments.option(
      "--top", "N", style.top,
      "show the N largest holders (those with 1 % or more, at most 10; 100 with --json)");
  arguments.choice("--at", "WHEN", style.at, {"peak", "end"},
                   "holders at the peak of their space, or at the end (the peak if the program "
                   "ended without a failure)");
  arguments.flag("--full", style.full,
                 "show every frame of each stack, not only the 14 most relevant");
  if (!arguments.parse(words)) return code(Exit::shown);

  const bundles::Source source = options.open();
  if (options.json) {
    print_json(views::show_json(source, style));
  } else {
    views::print_show_page(source, style, Terminal{STDOUT_FILENO});
  }
  return code(Exit::shown);
}

}  // namespace oomrec::tools::commands

// `oomrec stats`: totals of a recording, by size, allocator function and allocating function.
#include <unistd.h>

#include "tools/bundles/opening/options.h"
#include "tools/commands/commands.h"
#include "tools/recording/analysis/statistics.h"
#include "tools/views/stats/stats.h"

namespace oomrec::tools::commands {
namespace {

constexpr const char* kStatsExamples =
    "  oomrec stats\n"
    "  oomrec stats --top 20 oom_dumps/oom_cpu_20261121_101530_001\n"
    "  oomrec stats --json | jq .size_histogram\n";

}  // namespace

int stats_command(const Words& words) {
  Arguments arguments{
      "stats", "[OPTIONS] [BUNDLE]",
      "Totals, peak, sizes, allocator functions, and the functions that allocated most: "
      "by the innermost Python line of the program's own, else the innermost function.",
      kStatsExamples};
  bundles::ReadOptions options;
  std::string frames;
  unsigned top = 5;
  options.add_to(arguments);
  arguments.option("--top", "N", top, "the N largest functions (5; 100 with --json)");
  add_frames_choice(arguments, frames, "both");
  if (!arguments.parse(words)) return code(Exit::shown);

  const bundles::Source source = options.open();
  recording::Stacks stacks{*source.recording, *source.locations, recording::frames_named(frames)};
  const recording::Statistics statistics =
      recording::statistics_of(*source.recording, stacks, *source.locations);
  if (options.json) {
    print_json(views::stats_json(statistics, source, arguments.given("--top") ? top : 100));
  } else {
    views::print_stats_page(statistics, source, top, Terminal{STDOUT_FILENO});
  }
  return code(Exit::shown);
}

}  // namespace oomrec::tools::commands

// `oomrec fragmentation`: memory that allocators hold and the program does not use, and what helps.
#include <unistd.h>

#include "tools/bundles/opening/options.h"
#include "tools/commands/commands.h"
#include "tools/findings/fragmentation/page.h"

namespace oomrec::tools::commands {
namespace {

constexpr const char* kFragmentationExamples =
    "  oomrec fragmentation                     the newest bundle\n"
    "  oomrec fragmentation 4711                a running process\n"
    "  oomrec fragmentation --json | jq .heap.areas.free_share\n";

}  // namespace

int fragmentation_command(const Words& words) {
  Arguments arguments{
      "fragmentation", "[OPTIONS] [BUNDLE|SESSION|PID]",
      "Shows what allocators hold and the program does not use: the heap's live bytes against what "
      "glibc took from the system, free memory between live blocks (exact recordings), mappings, "
      "GPU pools and PyTorch's cache; and what helps, with the reason.",
      kFragmentationExamples};
  bundles::ReadOptions options;
  options.add_to(arguments);
  if (!arguments.parse(words)) return code(Exit::shown);

  const bundles::Source source = options.open();
  bundles::require_one_process(source, "fragmentation");
  const findings::Fragmentation figures = findings::fragmentation_of(source);
  if (options.json) {
    print_json(findings::fragmentation_json(figures, source));
  } else {
    findings::print_fragmentation(figures, source, Terminal{STDOUT_FILENO});
  }
  return code(Exit::shown);
}

}  // namespace oomrec::tools::commands

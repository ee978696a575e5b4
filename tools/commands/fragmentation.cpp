// `oomrec fragmentation`: what allocators hold and nobody uses, and what helps.
#include <unistd.h>

#include "tools/bundles/opening/options.h"
#include "tools/commands/commands.h"
#include "tools/findings/fragmentation/page.h"

namespace oomrec::tools::commands {
namespace {

constexpr const char* kExamples =
    "  oomrec fragmentation                     of the newest bundle\n"
    "  oomrec fragmentation 4711                of a running process\n"
    "  oomrec fragmentation --json | jq .heap.areas.free_share\n";

}  // namespace

int fragmentation_command(const Words& words) {
  Arguments arguments{
      "fragmentation", "[OPTIONS] [BUNDLE|SESSION|PID]",
      "What allocators hold and nobody uses: the heap's live bytes against what glibc has of the "
      "system, what lies free between live blocks (exact recordings), mappings, pools of GPUs and "
      "PyTorch's cache; and what helps, with the reason.",
      kExamples};
  bundles::ReadOptions options;
  options.add_to(arguments);
  if (!arguments.parse(words)) return code(Exit::shown);

  const bundles::Source source = options.open();
  bundles::refuse_job(source, "fragmentation");
  const findings::Fragmentation figures = findings::fragmentation_of(source);
  if (options.json) {
    print_json(findings::fragmentation_json(figures, source));
  } else {
    findings::print_fragmentation(figures, source, Terminal{STDOUT_FILENO});
  }
  return code(Exit::shown);
}

}  // namespace oomrec::tools::commands

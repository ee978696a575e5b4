// `oomrec leaks`: stacks whose live bytes grow over the recording's checkpoints.
#include <unistd.h>

#include "tools/base/arguments.h"
#include "tools/bundles/opening/options.h"
#include "tools/commands/commands.h"
#include "tools/findings/leaks/page.h"

namespace oomrec::tools::commands {
namespace {

constexpr const char* kLeaksExamples =
    "  oomrec leaks                             the newest bundle\n"
    "  oomrec leaks 4711                        a running process\n"
    "  oomrec leaks --fail-above 10M BUNDLE     for CI: exit 1 when more has leaked\n"
    "  oomrec leaks --json | jq '.leaks[0].stack'\n";

}  // namespace

int leaks_command(const Words& words) {
  Arguments arguments{"leaks", "[OPTIONS] [BUNDLE|SESSION|PID]",
                      "Finds stacks whose live bytes grow steadily over the recording, with their "
                      "rate, the fit (R²), the share of survivors, the age of the oldest block, "
                      "and what to try. A warm-up, a cache that levels off and a sawtooth do not "
                      "count. It needs eight checkpoints, about a second of allocations.",
                      kLeaksExamples};
  bundles::ReadOptions options;
  unsigned top = 10;
  bool full = false;
  bool fail = false;
  FailAbove fail_above;
  options.add_to(arguments);
  arguments.option("--top", "N", top, "show the N that grew most (10; 100 with --json)");
  arguments.flag("--full", full, "every frame of a stack");
  arguments.flag("--fail", fail, "exit 1 when something leaks");
  fail_above.add_to(arguments, "exit 1 when more than SIZE has leaked");
  if (!arguments.parse(words)) return code(Exit::shown);
  fail_above.read();

  const bundles::Source source = options.open();
  const findings::LeakReport report{source};
  if (options.json) {
    print_json(report.json(arguments.given("--top") ? top : 100));
  } else {
    report.print(top, full, Terminal{STDOUT_FILENO});
  }
  const findings::Leaks& leaks = report.leaks();
  fail_above.check(static_cast<std::uint64_t>(leaks.bytes()), "leaked");
  return code(fail && leaks.detected() ? Exit::check_failed : Exit::shown);
}

}  // namespace oomrec::tools::commands

// `oomrec diff A B`: what grew between two recordings.
#include <unistd.h>

#include "tools/base/arguments.h"
#include "tools/bundles/opening/options.h"
#include "tools/commands/commands.h"
#include "tools/findings/diff/page.h"
#include "tools/sections/holders.h"

namespace oomrec::tools::commands {
namespace {

constexpr const char* kDiffExamples =
    "  oomrec diff before/ after/               two bundles of one program, or of two builds of "
    "it\n"
    "  oomrec diff before/ 4711                 a bundle and a running process\n"
    "  oomrec diff --at peak --space heap A B\n"
    "  oomrec diff --fail-above 10M A B         for CI: exit 1 when it grew by more\n";

constexpr const char* kCompared =
    "a bundle directory, a recording, the pid or program of a recorded process, or a PyTorch "
    "memory snapshot";

}  // namespace

int diff_command(const Words& words) {
  Arguments arguments{
      "diff", "[OPTIONS] BUNDLE OTHER",
      "Shows what grew from one recording to another, by space, function and stack, most growth "
      "first. Each may be a bundle, a recording or a running process. Stacks match by line; if "
      "builds or sources differ, by function and file name.",
      kDiffExamples};
  bundles::ReadOptions options;
  std::string other;
  findings::DiffStyle style;
  style.space = "all";
  FailAbove fail_above;
  options.add_to(arguments, kCompared);
  arguments.positional("OTHER", other, "the later one, to compare with");
  arguments.choice(
      "--at", "WHEN", style.at, {recording::kAtNames.begin(), recording::kAtNames.end()},
      "at the end, at the peak of the space, or all that was ever allocated (the peak if "
      "both programs ended without a failure, else the end)");
  arguments.choice("--space", "SPACE", style.space, space_choices(),
                   "which memory to count (all: the spaces that add up)");
  arguments.option("--top", "N", style.top,
                   "show the N largest changes (those with 1 % of the largest; 100 with --json)");
  arguments.flag("--full", style.full, "every frame of a stack");
  arguments.flag("--by-chance", style.by_chance,
                 "also show changes that sampling error may explain");
  fail_above.add_to(arguments, "exit 1 when it grew by more than SIZE");
  if (!arguments.parse(words)) return code(Exit::shown);
  fail_above.read();
  if (other.empty()) {
    throw Error{Exit::bad_input, "diff needs two recordings",
                "Give both: oomrec diff BEFORE AFTER (bundles, sessions or processes)."};
  }

  if (options.json && !arguments.given("--top")) style.top = 100;
  const bundles::Source before = options.open(options.bundle);
  const bundles::Source after = options.open(other);
  const recording::At usual = std::min(sections::moment_of(before), sections::moment_of(after));
  const recording::At when =
      value_named<recording::At>(recording::kAtNames, style.at).value_or(usual);
  style.at = name_of(recording::kAtNames, when);
  const findings::DiffPage page{before, after, when, value_named<Space>(kSpaceNames, style.space)};
  if (options.json) {
    print_json(page.json(style));
  } else {
    page.print(style, Terminal{STDOUT_FILENO});
  }
  const std::int64_t growth = page.difference().total.growth();
  fail_above.check(static_cast<std::uint64_t>(std::max<std::int64_t>(0, growth)), "more are held");
  return code(Exit::shown);
}

}  // namespace oomrec::tools::commands

// `oomrec diff A B`: what grew between two recordings.
#include <fmt/format.h>
#include <unistd.h>

#include "tools/base/fail_above.h"
#include "tools/bundles/opening/options.h"
#include "tools/commands/commands.h"
#include "tools/findings/diff/page.h"

namespace oomrec::tools::commands {
namespace {

constexpr const char* kExamples =
    "  oomrec diff before/ after/               two bundles of one program, or of two builds of "
    "it\n"
    "  oomrec diff before/ 4711                 a bundle, and what runs now\n"
    "  oomrec diff --at peak --space heap A B\n"
    "  oomrec diff --fail-above 10M A B         exit 1 when it holds more by so much: for CI\n";

constexpr const char* kCompared =
    "a bundle's directory, a recording, the number or program of a recorded process, or a memory "
    "snapshot of PyTorch's";

std::optional<Space> space_of(const std::string& word) {
  for (std::size_t i = 0; i < kSpaceCount; ++i)
    if (kSpaceNames[i] == word) return static_cast<Space>(i);
  return std::nullopt;
}

}  // namespace

int diff_command(const Words& words) {
  Arguments arguments{
      "diff", "[OPTIONS] BUNDLE OTHER",
      "What grew from one recording to another, by space, function and stack, growth first. Each "
      "may be a bundle, a session or the number of a running process. Stacks are matched by their "
      "lines, and where builds or sources differ by functions and file names.",
      kExamples};
  bundles::ReadOptions options;
  std::string other;
  findings::DiffStyle style;
  style.at = "end";
  style.space = "all";
  FailAbove fail_above;
  std::vector<std::string> spaces{"all"};
  for (const std::string_view name : kSpaceNames) spaces.emplace_back(name);
  options.add_to(arguments, kCompared);
  arguments.positional("OTHER", other, "what it is compared with: the later one");
  arguments.choice("--at", "WHEN", style.at, {"end", "peak", "ever"},
                   "what was held last, when the space was largest, or all that was allocated");
  arguments.choice("--space", "SPACE", style.space, spaces, "what to count (all: what adds up)");
  arguments.option("--top", "N", style.top,
                   "the N largest changes (those with 1 % of the largest; 100 with --json)");
  arguments.flag("--full", style.full, "every frame of a stack");
  arguments.flag("--by-chance", style.by_chance,
                 "also changes of estimates that the chance of sampling explains");
  fail_above.add_to(arguments, "exit 1 when it grew by more than SIZE");
  if (!arguments.parse(words)) return code(Exit::shown);
  fail_above.read();
  if (other.empty()) {
    throw Error{Exit::bad_input, "two recordings are compared",
                "Give both: oomrec diff BEFORE AFTER (bundles, sessions or processes)."};
  }

  if (options.json && !arguments.given("--top")) style.top = 100;
  const bundles::Source before = options.open(options.bundle);
  const bundles::Source after = options.open(other);
  const recording::At when = style.at == "end"    ? recording::At::end
                             : style.at == "peak" ? recording::At::peak
                                                  : recording::At::ever;
  const findings::DiffPage page{before, after, when, space_of(style.space)};
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

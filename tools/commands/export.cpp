// `oomrec export`: a recording in the formats of other tools.
#include <fmt/format.h>

#include "tools/bundles/opening/options.h"
#include "tools/commands/choices.h"
#include "tools/commands/commands.h"
#include "tools/commands/export_rows.h"
#include "tools/print/moment.h"
#include "tools/views/export/format.h"

namespace oomrec::tools::commands {
namespace {

constexpr const char* kExamples =
    "  oomrec export --format folded | flamegraph.pl --countname bytes > memory.svg\n"
    "  oomrec export --format speedscope -o memory.speedscope.json\n"
    "  oomrec export --format pprof -o memory.pb.gz && go tool pprof -top memory.pb.gz\n"
    "  oomrec export --format perfetto -o memory.pftrace          for https://ui.perfetto.dev\n"
    "  oomrec export --format memory_viz -o memory.pickle         for "
    "https://pytorch.org/memory_viz\n"
    "  oomrec export --format csv --what timeline -o memory.csv\n"
    "  oomrec export --format row oom_dumps -o deaths.jsonl\n";

struct ExportOptions : bundles::ReadOptions {
  std::string format, what, output;
  views::Selection selection;
  std::vector<std::string> named;
  std::string at, frames;
  bool count = false;
};

void check_figure(const views::Format& format, const Arguments& arguments) {
  if (format.name == "row") {
    for (const char* option : {"--space", "--group", "--frames", "--rank"})
      if (arguments.given(option))
        throw Error{Exit::bad_input, fmt::format("{} does not apply to the format row", option),
                    "Leave it out: a row has what all rows have."};
  }
  if (format.single_figure) return;
  for (const char* option : {"--at", "--count"}) {
    if (arguments.given(option))
      throw Error{Exit::bad_input,
                  fmt::format("{} does not apply to the format {}", option, format.name),
                  "Leave it out: this format holds all figures of holders, or none."};
  }
  if (format.name == "telemetry" && arguments.given("--frames"))
    throw Error{Exit::bad_input, "--frames does not apply to the format telemetry",
                "Leave it out: this format holds no stacks."};
}

}  // namespace

int export_command(const Words& words) {
  Arguments arguments{
      "export", "[OPTIONS] --format FORMAT [BUNDLE]…",
      "Writes a recording in another tool's format: flamegraph.pl (folded), speedscope, pprof, "
      "Perfetto, PyTorch's memory_viz, GPU Memory Profiler (telemetry); or as JSON or CSV; or "
      "bundles as rows of a table of deaths (row).",
      kExamples};
  ExportOptions options;
  arguments.positionals(
      "BUNDLE", options.named,
      fmt::format("{}; with --format row several, directories of bundles, and files of rows, "
                  "or - for those of stdin, which get today's signatures",
                  bundles::kReadable));
  options.add_options_to(arguments);
  arguments.choice("--format", "FORMAT", options.format, views::format_names(),
                   "the format to write");
  arguments.choice("--what", "WHAT", options.what,
                   {views::kContentNames.begin(), views::kContentNames.end()},
                   "what to write, if the format can hold several");
  arguments.option("-o", "FILE", options.output, "write to FILE; - is stdout (stdout)");
  arguments.choice("--space", "SPACE", options.selection.space, space_choices(),
                   "holders in one space (all: the spaces that add up)");
  arguments.option("--group", "NAME", options.selection.group,
                   "holders of the threads of one group, such as main (all of them)");
  arguments.choice(
      "--at", "WHEN", options.at, {recording::kAtNames.begin(), recording::kAtNames.end()},
      "folded: at the end, at the peak of the space, or ever allocated (the peak if the "
      "program ended without a failure, else the end)");
  add_frames_choice(arguments, options.frames, "both");
  arguments.flag("--count", options.count, "folded: blocks instead of bytes");
  if (!arguments.parse(words)) return code(Exit::shown);

  if (options.json && options.format.empty()) options.format = "json";
  if (options.json && options.format != "json")
    throw Error{Exit::bad_input,
                fmt::format("--json and --format {} exclude each other", options.format),
                "Leave one of them out."};
  const views::Format& format = views::format_of(options.format);
  const std::vector<views::Content> contents = views::choose_contents(format, options.what);
  check_figure(format, arguments);
  if (format.name != "row" && options.named.size() > 1)
    throw Error{Exit::bad_input, fmt::format("the format {} holds one bundle", format.name),
                "Export each one by itself; only --format row takes several."};
  if (format.name == "row") {
    views::Output output{options.output, format.encoding};
    const int exit_code = export_rows(options, options.named, output);
    output.finish();
    return exit_code;
  }
  if (!options.named.empty()) options.bundle = options.named[0];
  const bundles::Source source = options.open();
  if (format.name == "memory_viz" || format.name == "telemetry" || options.what == "events")
    bundles::require_one_process(source,
                                 options.what == "events" ? "events" : std::string{format.name});
  recording::Stacks stacks{*source.recording, *source.locations,
                           recording::frames_named(options.frames)};
  views::Output output{options.output, format.encoding};
  format.write({source, stacks, contents, options.selection, print::moment_of(source, options.at),
                options.count},
               output);
  output.finish();
  return code(Exit::shown);
}

}  // namespace oomrec::tools::commands

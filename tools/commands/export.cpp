// `oomrec export`: a recording in the formats of other tools.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "tools/base/text.h"
#include "tools/bundles/opening/options.h"
#include "tools/commands/commands.h"
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
    "  oomrec export --format csv --what timeline -o memory.csv\n";

struct ExportOptions : bundles::ReadOptions {
  std::string format, what, output;
  views::Selection selection;
  std::string at = "end";
  bool count = false;
};

std::vector<std::string> format_names() {
  std::vector<std::string> names;
  for (const views::Format& format : views::formats()) names.emplace_back(format.name);
  return names;
}

const views::Format& format_of(const std::string& name) {
  for (const views::Format& format : views::formats())
    if (format.name == name) return format;
  throw Error{Exit::bad_input, "no format was named",
              fmt::format("Give --format {}.", fmt::join(format_names(), "|"))};
}

bool holds(const views::Format& format, views::What what) {
  return std::find(format.what.begin(), format.what.end(), what) != format.what.end();
}

views::What what_of(const std::string& name) {
  const auto at = std::find(views::kWhatNames.begin(), views::kWhatNames.end(), name);
  return static_cast<views::What>(at - views::kWhatNames.begin());
}

std::vector<views::What> wanted(const views::Format& format, const std::string& name) {
  if (name.empty())
    return format.all_at_once ? format.what : std::vector<views::What>{format.what.front()};
  const views::What what = what_of(name);
  if (holds(format, what)) return {what};
  std::vector<std::string_view> able, own;
  for (const views::Format& other : views::formats())
    if (holds(other, what)) able.push_back(other.name);
  for (const views::What one : format.what) own.push_back(views::word_of(one));
  throw Error{Exit::bad_input, fmt::format("the format {} holds no {}", format.name, name),
              fmt::format("It holds {}; {} are for {}.", fmt::join(own, " and "), name,
                          fmt::join(able, ", "))};
}

void check_figure(const views::Format& format, const Arguments& arguments) {
  if (format.one_figure) return;
  for (const char* option : {"--at", "--count"}) {
    if (arguments.given(option))
      throw Error{Exit::bad_input, fmt::format("{} is not for the format {}", option, format.name),
                  "Leave it out: this format holds all figures, or none of holders."};
  }
}

recording::At at_of(const std::string& word) {
  return word == "end"    ? recording::At::end
         : word == "peak" ? recording::At::peak
                          : recording::At::ever;
}

}  // namespace

int export_command(const Words& words) {
  Arguments arguments{
      "export", "[OPTIONS] --format FORMAT [BUNDLE]",
      "Writes a recording in a format of other tools: flamegraph.pl (folded), speedscope, pprof, "
      "Perfetto, PyTorch's memory_viz, GPU Memory Profiler (telemetry); or as JSON or CSV.",
      kExamples};
  ExportOptions options;
  std::vector<std::string> spaces{"all"};
  for (const std::string_view name : kSpaceNames) spaces.emplace_back(name);
  options.add_to(arguments);
  arguments.choice("--format", "FORMAT", options.format, format_names(), "what to write");
  arguments.choice("--what", "WHAT", options.what,
                   {views::kWhatNames.begin(), views::kWhatNames.end()},
                   "where the format can hold several");
  arguments.option("-o", "FILE", options.output, "where to (stdout)");
  arguments.choice("--space", "SPACE", options.selection.space, spaces,
                   "holders of one (all: what adds up)");
  arguments.option("--group", "NAME", options.selection.group,
                   "holders of the threads of one group, such as main (all of them)");
  arguments.choice("--at", "WHEN", options.at, {"end", "peak", "ever"},
                   "folded: what was held last, when the space was largest, or ever allocated");
  arguments.flag("--count", options.count, "folded: blocks instead of bytes");
  if (!arguments.parse(words)) return code(Exit::shown);

  if (options.json && options.format.empty()) options.format = "json";
  if (options.json && options.format != "json")
    throw Error{Exit::bad_input,
                fmt::format("--json and --format {} exclude each other", options.format),
                "Leave one of them out."};
  const views::Format& format = format_of(options.format);
  const std::vector<views::What> what = wanted(format, options.what);
  check_figure(format, arguments);
  const bundles::Source source = options.open();
  if (format.name == "memory_viz" || format.name == "telemetry" || options.what == "events")
    bundles::refuse_job(source, options.what == "events" ? "events" : std::string{format.name});
  recording::Stacks stacks{*source.recording, *source.places};
  views::Output output{options.output, format.binary};
  format.write({source, stacks, what, options.selection, at_of(options.at), options.count}, output);
  output.finish();
  return code(Exit::shown);
}

}  // namespace oomrec::tools::commands

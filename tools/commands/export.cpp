// `oomrec export`: a recording in the formats of other tools.

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string_view>
#include <utility>

#include "tools/base/error.h"
#include "tools/base/foreign_file.h"
#include "tools/base/terminal.h"
#include "tools/base/text.h"
#include "tools/bundles/opening/options.h"
#include "tools/bundles/ranks/merged.h"
#include "tools/bundles/recover/orphans.h"
#include "tools/bundles/store/bundles.h"
#include "tools/bundles/store/lives.h"
#include "tools/commands/commands.h"
#include "tools/sections/holders.h"
#include "tools/views/export/format.h"
#include "tools/views/export/row.h"
#include "tools/views/export/row_history.h"

namespace oomrec::tools::commands {
namespace {

constexpr const char* kExportExamples =
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

// The dump directory that is named; empty if it is none.
std::filesystem::path dump_directory(const std::string& named) {
  std::error_code error;
  const bool is_one = std::filesystem::is_directory(named, error) && !bundles::is_bundle(named);
  return is_one ? bundles::absolute_directory(named) : std::filesystem::path{};
}

// Its bundles, the oldest first, after those of its orphans are written.
std::vector<std::string> bundles_of(const std::filesystem::path& directory,
                                    views::RowWriter& rows) {
  bundles::recover_orphans({directory});
  std::vector<std::string> paths;
  for (const bundles::BundleSummary& bundle : rows.bundles_in(directory))
    paths.insert(paths.begin(), bundle.path.string());
  return paths;
}

// A file of rows, or "-" for those of stdin.
bool holds_rows(const std::string& named) {
  std::error_code error;
  return named == "-" || (std::filesystem::is_regular_file(named, error) &&
                          first_bytes_of(ForeignPath::named(named), 1) == "{");
}

void write_renewed(int rows, const std::string& name, views::Output& output) {
  constexpr std::size_t kPart = 64 * 1024, kMostBytes = 64 * views::kMostRowBytes;
  std::string pending;  // a line that has no end yet
  for (ssize_t bytes = -1; bytes != 0;) {
    const std::size_t before = pending.size();
    pending.resize(before + kPart);
    bytes = TEMP_FAILURE_RETRY(read(rows, pending.data() + before, kPart));
    if (bytes < 0) {
      throw Error{Exit::bad_input,
                  fmt::format("{} cannot be read: {}", printable(name), std::strerror(errno)), ""};
    }
    pending.resize(before + static_cast<std::size_t>(bytes));
    if (bytes == 0 && !pending.empty()) pending += '\n';
    std::size_t begin = 0;
    for (std::size_t end; (end = pending.find('\n', begin)) != pending.npos; begin = end + 1)
      output.write(views::renewed_row(std::string_view{pending}.substr(begin, end - begin)) + "\n");
    pending.erase(0, begin);
    if (pending.size() > kMostBytes) {
      throw Error{Exit::bad_input,
                  fmt::format("{} has a line that is longer than any row", printable(name)),
                  "Give lines that `oomrec export --format row` wrote."};
    }
  }
}

void write_renewed(const std::string& name, views::Output& output) {
  if (name == "-") return write_renewed(STDIN_FILENO, name, output);
  const ForeignFile file{ForeignPath::named(name)};
  if (!file.problem().empty())
    throw Error{Exit::bad_input, fmt::format("{} {}", printable(name), file.problem()), ""};
  write_renewed(file.descriptor(), name, output);
}

// --format row, the only format of several bundles at once. Writes a row for each bundle that is
// named: a bundle, a recording, a directory of bundles, with the rows of processes that ended well,
// or a merged bundle, which has one for each of its ranks. The rows of a file, or of stdin (-), get
// today's signatures. Of several, reports those that cannot be read on stderr and writes the
// others. Returns the exit code. Throws Error if the only one cannot be read.
int export_rows(const bundles::ReadOptions& options, const std::vector<std::string>& named,
                views::Output& output) {
  views::RowWriter rows;
  std::vector<std::string> all, lives;
  if (named.empty()) all.emplace_back();  // the newest
  bool has_rows = false;
  for (const std::string& name : named) {
    if (holds_rows(name)) {
      write_renewed(name, output);
      has_rows = true;
      continue;
    }
    const std::filesystem::path directory = dump_directory(name);
    std::vector<std::string> bundles;
    bool has_lives = false;
    if (!directory.empty()) {
      bundles = bundles_of(directory, rows);
      for (const std::filesystem::path& file : bundles::lives_in(directory)) {
        std::optional<std::string> line = bundles::read_life(file);
        if (line) lives.push_back(std::move(*line));
        has_lives = true;
      }
    }
    if (bundles.empty() && !has_lives) all.push_back(name);
    all.insert(all.end(), bundles.begin(), bundles.end());
  }
  for (const std::string& line : lives) output.write(line + "\n");
  const auto write = [&](const bundles::Source& source) {
    output.write(rows.line_of(source) + "\n");
  };
  const auto write_bundle = [&](const std::string& bundle) {
    const bundles::Source source = options.open(bundle);
    if (!source.is_job()) return write(source);
    bundles::for_each_rank(source, [&](const Json&, const bundles::Source& rank) { write(rank); });
  };
  if (all.size() == 1 && lives.empty() && !has_rows) {
    write_bundle(all[0]);
    return code(Exit::shown);
  }
  bool is_complete = true;
  for (const std::string& bundle : all) {
    try {
      write_bundle(bundle);
    } catch (const Error& error) {
      is_complete = false;
      remark(fmt::format("left out: {}: {}", printable(bundle), printable(error.what())));
    }
  }
  return code(is_complete ? Exit::shown : Exit::in_part);
}

}  // namespace

int export_command(const Words& words) {
  Arguments arguments{
      "export", "[OPTIONS] --format FORMAT [BUNDLE]…",
      fmt::format(
          "Writes a recording in another tool's format: {}; or as JSON or CSV; or bundles as "
          "rows of a table of deaths (row).",
          fmt::join(views::tools_with_formats(), ", ")),
      kExportExamples};
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
  format.write({source, stacks, contents, options.selection,
                sections::moment_of(source, options.at), options.count},
               output);
  output.finish();
  return code(Exit::shown);
}

}  // namespace oomrec::tools::commands

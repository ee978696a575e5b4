// `oomrec report`, `flamegraph` and `table`: write a recording as one HTML file, opened at a view.
#include <fmt/format.h>

#include <cstdio>

#include "tools/base/output_file.h"
#include "tools/base/terminal.h"
#include "tools/base/text.h"
#include "tools/bundles/opening/options.h"
#include "tools/commands/commands.h"
#include "tools/views/report/data.h"
#include "tools/views/report/report.h"

namespace oomrec::tools::commands {
namespace {

// One of the three commands.
struct ReportCommand {
  std::string_view name, view, summary, examples;
};

constexpr ReportCommand kReport = {
    "report", "",
    "Writes a recording as one HTML file that needs no network: what happened, memory over time, a "
    "flame graph and a table of what holds it, processes and environment.",
    "  oomrec report                            the newest bundle, into oomrec-report-*.html\n"
    "  oomrec report --open                     and show it\n"
    "  oomrec report oom_dumps/oom_cpu_20261121_101530_001 -o why.html\n"
    "  oomrec report --redact -o - | gzip > for-the-bug-report.html.gz\n"};
constexpr ReportCommand kFlamegraph = {
    "flamegraph", "flame", "Writes the page of `oomrec report`, opened at the flame graph.",
    "  oomrec flamegraph --open\n"
    "  oomrec flamegraph --frames python        without native functions\n"
    "  oomrec flamegraph -o flames.html\n"};
constexpr ReportCommand kTable = {"table", "table",
                                  "Writes the page of `oomrec report`, opened at the table.",
                                  "  oomrec table --open\n"
                                  "  oomrec table -o table.html\n"};

struct ReportOptions : bundles::ReadOptions {
  std::string file;
  std::string view;
  std::string label, frames;
  bool redact = false;
  bool in_browser = false;
  bool force = false;
};

void print_file(const std::filesystem::path& file, const ReportOptions& options,
                std::size_t bytes) {
  if (options.json) {
    print_json({{"schema_version", 1},
                {"file", std::filesystem::absolute(file).string()},
                {"bytes", bytes},
                {"view", text_or_null(options.view)},
                {"redacted", options.redact}});
  } else {
    fmt::print("{} ({})\n", printable(file.string()), size_text(bytes));
  }
}

int report(const ReportCommand& command, const Words& words) {
  Arguments arguments{command.name, "[OPTIONS] [BUNDLE]", command.summary, command.examples};
  ReportOptions options;
  options.view = command.view;
  options.add_to(arguments);
  arguments.option("-o", "FILE", options.file,
                   "write FILE (oomrec-report-PROGRAM-PID.html); - is stdout");
  arguments.flag("--force", options.force,
                 "overwrite the default file, even if it is not a report");
  arguments.flag("--redact", options.redact, "leave out private data, as `oomrec redact` does");
  arguments.flag("--open", options.in_browser, "open it in the browser");
  arguments.choice("--view", "VIEW", options.view, views::report_views(), "the view to open at");
  arguments.option("--label", "TEXT", options.label,
                   "select what was allocated under this label of the program's own");
  add_frames_choice(arguments, options.frames, "both");
  if (!arguments.parse(words)) return code(Exit::shown);

  const bundles::Source source = options.open();
  const views::InitialView initial_view{options.view, options.label, options.frames};
  const std::string page = options.redact ? views::redacted_report_of(source, initial_view)
                                          : views::report_of(source, initial_view);
  if (options.file == "-") {
    std::fwrite(page.data(), 1, page.size(), stdout);
    return code(Exit::shown);
  }
  const bool named = !options.file.empty();
  const std::filesystem::path file =
      named ? std::filesystem::path{options.file}
            : views::report_file(
                  views::program_name(*source.recording),
                  source.is_job() ? "ranks" : std::to_string(source.recording->header().pid));
  // A report is replaced, not rewritten: what a link of the default name leads to stays as it is.
  if (!named && views::is_own_report(file))
    replace_file(".", file.string(), page);
  else
    write_output(file, page, named || options.force ? IfExists::overwrite : IfExists::fail);
  print_file(file, options, page.size());
  if (options.in_browser && !views::open_in_browser(file))
    write_stderr(fmt::format("no browser could be started: open file://{}\n",
                             printable(std::filesystem::absolute(file).string())));
  return code(Exit::shown);
}

}  // namespace

int report_command(const Words& words) { return report(kReport, words); }
int flamegraph_command(const Words& words) { return report(kFlamegraph, words); }
int table_command(const Words& words) { return report(kTable, words); }

}  // namespace oomrec::tools::commands

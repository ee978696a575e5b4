// `oomrec report`, and `flamegraph` and `table`: a recording as one HTML file, opened at a view.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "tools/base/output_file.h"
#include "tools/base/text.h"
#include "tools/bundles/opening/open.h"
#include "tools/bundles/opening/options.h"
#include "tools/bundles/redact/bundle.h"
#include "tools/bundles/redact/job.h"
#include "tools/bundles/redact/scratch_directory.h"
#include "tools/commands/commands.h"
#include "tools/views/report/data.h"
#include "tools/views/report/output.h"
#include "tools/views/report/page.h"

namespace oomrec::tools::commands {
namespace {

// A command that shows the page at its view.
struct ReportCommand {
  std::string_view name, view, summary, examples;
};

constexpr ReportCommand kReport = {
    "report", "",
    "Writes one HTML file that shows a recording in a browser, without a network: what happened, "
    "memory over time, a flame graph and a table of who holds it, processes and environment.",
    "  oomrec report                            the newest bundle, into oomrec-report-*.html\n"
    "  oomrec report --open                     and show it\n"
    "  oomrec report oom_dumps/oom_cpu_20261121_101530_001 -o why.html\n"
    "  oomrec report --redact -o - | gzip > for-the-bug-report.html.gz\n"};
constexpr ReportCommand kFlamegraph = {"flamegraph", "flame",
                                       "The page of `oomrec report`, opened at the flame graph.",
                                       "  oomrec flamegraph --open\n"
                                       "  oomrec flamegraph -o flames.html\n"};
constexpr ReportCommand kTable = {"table", "table",
                                  "The page of `oomrec report`, opened at the table.",
                                  "  oomrec table --open\n"
                                  "  oomrec table -o table.html\n"};

struct ReportOptions : bundles::ReadOptions {
  std::string file;
  std::string view;
  std::string label;
  bool redact = false;
  bool in_browser = false;
  bool force = false;
};

void say_where(const std::filesystem::path& file, const ReportOptions& options, std::size_t bytes) {
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

std::string page_of(const bundles::Source& source, const ReportOptions& options) {
  const views::ReportData data = views::report_data(source);
  const auto known = std::find(data.labels.begin(), data.labels.end(), options.label);
  if (!options.label.empty() && known == data.labels.end()) {
    throw Error{Exit::nothing_found,
                fmt::format("nothing was allocated under the label '{}'", printable(options.label)),
                "Without --label the page has a choice of the labels that there are."};
  }
  return views::report_page(views::report_title(source), {options.view, options.label}, data.bytes);
}

// Made of a redacted bundle, so that nothing can be on the page that is not in that.
std::string redacted_page(const bundles::Source& source, const ReportOptions& options) {
  const bundles::ScratchDirectory scratch;
  const std::filesystem::path bundle =
      scratch.path() / (source.bundle.empty() ? "recording" : source.bundle.filename());
  source.is_job() ? bundles::write_redacted_job(source, bundle)
                  : bundles::write_redacted(source, bundle);
  return page_of(bundles::open_source(bundle), options);
}

int report(const ReportCommand& command, const Words& words) {
  Arguments arguments{command.name, "[OPTIONS] [BUNDLE]", command.summary, command.examples};
  ReportOptions options;
  options.view = command.view;
  options.add_to(arguments);
  arguments.option("-o", "FILE", options.file,
                   "write FILE (oomrec-report-PROGRAM-PID.html); - is stdout");
  arguments.flag("--force", options.force, "overwrite the file where none was named");
  arguments.flag("--redact", options.redact,
                 "leave out what tells of the machine and its user (`oomrec redact`)");
  arguments.flag("--open", options.in_browser, "show it in the browser");
  arguments.choice("--view", "VIEW", options.view,
                   {"overview", "timeline", "flame", "table", "leaks", "fragmentation", "processes",
                    "environment"},
                   "what it opens at");
  arguments.option("--label", "TEXT", options.label,
                   "show first what was allocated under this label of the program's own");
  if (!arguments.parse(words)) return code(Exit::shown);

  const bundles::Source source = options.open();
  const std::string page =
      options.redact ? redacted_page(source, options) : page_of(source, options);
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
  write_output(file, page, named || options.force ? IfThere::overwrite : IfThere::refuse);
  say_where(file, options, page.size());
  if (options.in_browser && !views::open_in_browser(file))
    fmt::print(stderr, "there is no browser to be had here: open file://{}\n",
               printable(std::filesystem::absolute(file).string()));
  return code(Exit::shown);
}

}  // namespace

int report_command(const Words& words) { return report(kReport, words); }
int flamegraph_command(const Words& words) { return report(kFlamegraph, words); }
int table_command(const Words& words) { return report(kTable, words); }

}  // namespace oomrec::tools::commands

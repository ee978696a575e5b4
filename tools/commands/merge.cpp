// `oomrec merge`: merges the bundles of a job's ranks.
#include <fmt/format.h>

#include "tools/base/arguments.h"
#include "tools/base/json.h"
#include "tools/base/terminal.h"
#include "tools/base/text.h"
#include "tools/bundles/ranks/merged.h"
#include "tools/commands/commands.h"
#include "tools/recording/symbolize/cache_directory.h"

namespace oomrec::tools::commands {
namespace {

constexpr const char* kMergeExamples =
    "  oomrec merge oom_dumps -o job                    all ranks whose bundles are there\n"
    "  oomrec merge node0/oom_dumps node1/oom_dumps -o job\n"
    "  oomrec merge --align 'mark=step 0' node*/oom_dumps -o job    if clocks disagree\n"
    "  oomrec show job && oomrec report --open job && oomrec tree --rank 3 job\n"
    "\n"
    "Exit code 1 when something was left out: the bundle is written, and says what.\n";

constexpr std::string_view kMark = "mark=";

std::string mark_in(const std::string& align) {
  if (align.empty()) return {};
  if (align.starts_with(kMark) && align.size() > kMark.size()) return align.substr(kMark.size());
  throw invalid_value("--align", align,
                      "Use --align mark=TEXT: a mark that every rank makes at the same moment.");
}

// Exit code 1 means that a bundle was written. Without any input it must be bad_input.
bundles::Job job_of_named(const std::vector<std::string>& named, const std::string& mark) {
  try {
    return bundles::job_of(named, mark, recording::CacheDirectory::of_user());
  } catch (const Error& error) {
    throw Error{Exit::bad_input, error.what(), error.what_to_do()};
  }
}

}  // namespace

int merge_command(const Words& words) {
  Arguments arguments{"merge", "[OPTIONS] DIR… -o DIR",
                      "Merges the bundles of a job's ranks (torchrun, mpirun, srun) into one. Each "
                      "DIR is a bundle, a recording, a merged bundle, or a directory of them. "
                      "Every reading command (show, report, tree, …) reads the result, with the "
                      "rank as the outermost frame; --rank N reads one rank.",
                      kMergeExamples};
  std::vector<std::string> named;
  std::string to, align;
  bool json = false;
  arguments.positionals("DIR", named, "bundles, or directories of bundles, from all hosts");
  arguments.option("-o", "DIR", to, "the new bundle; it must not exist yet");
  arguments.option("--align", "mark=TEXT", align,
                   "align ranks at their mark of that text (default: by wall clock)");
  arguments.flag("--json", json, "print JSON (docs/json.md)");
  if (!arguments.parse(words)) return code(Exit::shown);
  if (named.empty() || to.empty())
    throw Error{Exit::bad_input,
                named.empty() ? "no bundle was given" : "no output directory was given",
                "Give the bundles and the output: oomrec merge oom_dumps -o job"};

  bundles::Job job = job_of_named(named, mark_in(align));
  std::filesystem::path directory = std::filesystem::absolute(to).lexically_normal();
  if (!directory.has_filename()) directory = directory.parent_path();
  bundles::write_merged(job, directory);
  for (const bundles::LeftOut& one : job.left_out)
    remark(fmt::format("left out: {}: {}", printable(one.what), printable(one.why)));
  if (json) {
    print_json({{"schema_version", 1},
                {"bundle", directory.string()},
                {"ranks", job.ranks.size()},
                {"missing", job.missing},
                {"left_out", job.left_out.size()}});
  } else {
    const std::string of = job.missing.empty() ? "" : fmt::format(" of {}", job.world_size);
    fmt::print("{}   {}{}; read it with: oomrec show {}\n", printable(directory.string()),
               plural(job.ranks.size(), "rank", "ranks"), of, shell_word(printable(to)));
  }
  return code(job.left_out.empty() ? Exit::shown : Exit::in_part);
}

}  // namespace oomrec::tools::commands

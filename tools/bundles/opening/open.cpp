#include "tools/bundles/opening/open.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <vector>

#include "common/system/files.h"
#include "tools/base/error.h"
#include "tools/base/text.h"
#include "tools/bundles/ranks/merged.h"
#include "tools/bundles/recover/orphans.h"
#include "tools/bundles/store/access.h"
#include "tools/bundles/store/bundles.h"

namespace oomrec::tools::bundles {
namespace {

namespace fs = std::filesystem;

// `sessions` belong to running processes, or to dead ones with another dump directory.
std::string advice_without_bundle(const std::vector<Session>& sessions) {
  const auto dead = static_cast<std::uint64_t>(
      std::ranges::count_if(sessions, [](const Session& session) { return !session.alive; }));
  const std::uint64_t alive = sessions.size() - dead;
  if (dead != 0)
    return fmt::format(
        "{} elsewhere: `oomrec ls --all` lists them, `oomrec recover --unknown` makes bundles of "
        "them.",
        plural(dead, "dead process left a recording", "dead processes left recordings"));
  if (alive != 0)
    return fmt::format(
        "{} recorded: `oomrec ls --all` lists them, `oomrec dump PID` writes a bundle.",
        plural(alive, "running process is", "running processes are"));
  return "A program that exits normally leaves none; --dump-at-exit writes one. To read another: "
         "oomrec show DIR";
}

fs::path default_bundle() {
  const std::vector<fs::path> directories = dump_directories();
  recover_orphans(directories);
  const std::vector<BundleSummary> bundles = bundles_in(directories);
  if (!bundles.empty()) return newest_cause(bundles).path;
  for (const fs::path& directory : directories) {
    require_readable(directory);
    for (const fs::path& bundle : unreadable_bundles_in(directory)) require_readable(bundle);
  }
  const std::string directory = directories.empty() ? "./oom_dumps" : directories.front().string();
  throw Error{Exit::nothing_found, fmt::format("there is no bundle in {}", printable(directory)),
              advice_without_bundle(sessions_of(directories))};
}

// The job whose ranks' bundles are in this directory. Empty if there are none, or if the directory
// is itself a bundle.
std::optional<Source> open_job(const fs::path& directory,
                               const std::shared_ptr<const recording::CacheDirectory>& cache) {
  std::error_code error;
  if (!fs::is_directory(directory, error) || fs::exists(directory / kRecordingName, error) ||
      !may_read(directory) || !holds_ranks(directory))
    return std::nullopt;
  return merged_source(job_of({directory.string()}, {}, cache), absolute_directory(directory));
}

// Throws Error that names the newest bundle if this is a dump directory, or has an oom_dumps.
void reject_dump_directory(const fs::path& directory) {
  std::error_code error;
  if (!fs::is_directory(directory, error) || !may_read(directory) || is_bundle(directory)) return;
  for (const fs::path& dumps : {directory, directory / "oom_dumps"}) {
    if (!fs::is_directory(dumps, error)) continue;
    recover_orphans({absolute_directory(dumps)});  // the newest bundle may not be written yet
    const std::vector<BundleSummary> bundles = bundles_in({dumps});
    if (bundles.empty()) continue;
    const std::string newest = dumps / newest_cause(bundles).path.filename();
    throw Error{Exit::bad_input,
                fmt::format("{} is a directory of {}", printable(dumps.string()),
                            plural(bundles.size(), "bundle", "bundles")),
                fmt::format("The newest: oomrec show {}; all: oomrec ls {}",
                            shell_word(printable(newest)), shell_word(printable(dumps.string())))};
  }
}

}  // namespace

Source open_source(const std::string& argument,
                   std::shared_ptr<const recording::CacheDirectory> cache) {
  const std::string name = argument.empty() ? default_bundle().string() : argument;
  if (std::optional<Source> job = open_job(name, cache)) return std::move(*job);
  reject_dump_directory(name);
  try {
    return open_recorded(name, std::move(cache));
  } catch (const Error& error) {
    if (error.code() == Exit::nothing_found) require_not_ended(name);
    throw;
  }
}

void require_not_ended(const std::string& argument) {
  const std::optional<pid_t> pid = recording::parse_pid(argument);
  if (!pid || system::start_ticks(*pid) != 0) return;
  const std::vector<std::filesystem::path> directories = dump_directories();
  recover_orphans(directories);
  const std::vector<BundleSummary> bundles = bundles_in(directories);
  const auto newest = std::ranges::find_if(bundles, [&](const BundleSummary& bundle) {
    return bundle.pid == static_cast<std::uint64_t>(*pid);
  });
  if (newest == bundles.end()) return;
  throw Error{
      Exit::nothing_found, fmt::format("process {} has ended", *pid),
      fmt::format("Its newest bundle, of {}: oomrec show {}", printable(newest->created_at_utc),
                  shell_word(printable(newest->path.string())))};
}

recording::LiveProcess find_live_process(const std::string& argument) {
  try {
    return recording::find_live_process(argument);
  } catch (const Error& error) {
    if (error.code() == Exit::nothing_found) require_not_ended(argument);
    throw;
  }
}

namespace {

// Accepts only a plain directory name: the JSON it is from may be forged.
bool is_plain_name(const fs::path& name) {
  return !name.empty() && name == name.filename() && name != ".." && name != ".";
}

}  // namespace

void for_each_other_process(const Source& source, const std::vector<TreeProcess>& processes,
                            const std::function<void(std::size_t, const Source&)>& visit) {
  if (source.bundle.empty()) return;
  for (std::size_t i = 0; i < std::min(processes.size(), kMostProcesses); ++i) {
    const fs::path name = processes[i].bundle;
    if (!is_plain_name(name) || name == source.bundle.filename()) continue;
    try {
      visit(i, open_source(source.bundle.parent_path() / name, source.cache));
    } catch (const Error&) {
      continue;  // deleted meanwhile, or damaged
    }
  }
}

}  // namespace oomrec::tools::bundles

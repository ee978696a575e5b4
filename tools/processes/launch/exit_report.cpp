#include "tools/processes/launch/exit_report.h"

#include <fmt/format.h>
#include <sys/wait.h>

#include <algorithm>
#include <set>

#include "tools/base/log.h"
#include "tools/base/text.h"
#include "tools/bundles/opening/open.h"
#include "tools/bundles/recover/completion.h"
#include "tools/bundles/recover/on_oom.h"
#include "tools/bundles/recover/orphans.h"
#include "tools/bundles/store/bundles.h"
#include "tools/bundles/store/outcome.h"
#include "tools/processes/launch/failed_start.h"

namespace oomrec::tools::processes {
namespace {

namespace fs = std::filesystem;

void complete_bundles(const std::vector<fs::path>& directories, pid_t pid,
                      const deaths::DeathObservation& observed) {
  for (const bundles::BundleSummary& bundle : bundles::bundles_in(directories)) {
    if (!bundle.awaits_outcome || bundle.pid != static_cast<std::uint64_t>(pid)) continue;
    const recording::Recording recording{bundle.path / bundles::kRecordingName};
    const bool recent =
        bundles::realtime_now_ns() - time_of_text(bundle.created_at_utc) < deaths::kFollowsWithinNs;
    bundles::complete_bundle(
        bundle.path, recording, deaths::ending_of(recording.view(), observed),
        recent ? bundles::BundleEvent::led_to_end : bundles::BundleEvent::was_survived);
  }
}

// The program and its descendants, as far as the chain of their parents is recorded.
std::set<pid_t> process_tree_of(pid_t program, const std::vector<bundles::Session>& sessions) {
  std::set<pid_t> tree{program};
  for (std::size_t before = 0; before != tree.size();) {
    before = tree.size();
    for (const bundles::Session& session : sessions)
      if (tree.contains(session.parent_pid)) tree.insert(session.pid);
  }
  return tree;
}

// Directories of the program's recordings and bundles. `searched`: those that reading commands
// search for bundles in this environment.
struct Directories {
  std::vector<fs::path> dumps, searched;
  fs::path named_session;
};

// The user's command for a kill gets the program's directories.
bundles::OnOomCommand on_oom_command(const Options& options) {
  return {options.on_oom_exec,
          {{"OOMREC_DUMP_DIR", options.dump_dir}, {"OOMREC_SESSION_DIR", options.session_dir}}};
}

// How `oomrec show` finds a bundle: as the newest, or by its path.
enum class FoundAs { newest, path };

void report_bundle(const fs::path& bundle, FoundAs found_as) {
  const std::string path = printable(bundle.string());
  remark(fmt::format("bundle {}   read it with: oomrec show{}", path,
                     found_as == FoundAs::newest ? "" : " " + shell_word(path)));
}

// Recovers the sessions of the program and of its descendants; reading commands recover others.
void recover_own(const Directories& directories, pid_t pid,
                 const deaths::DeathObservation& observed, const Options& options) {
  const std::vector<bundles::Session> sessions =
      bundles::sessions_of(directories.dumps, directories.named_session);
  const std::set<pid_t> tree = process_tree_of(pid, sessions);
  for (const bundles::Session& session : sessions) {
    if (session.alive || !tree.contains(session.pid)) continue;
    const bool is_program = session.pid == pid;
    deaths::DeathObservation of_session;
    of_session.kernel_log = observed.kernel_log;
    const bundles::RecoveryResult recovered = bundles::recover(
        session,
        {.observed = is_program ? observed : of_session, .dump_directories = directories.dumps});
    if (recovered.has_bundle() && options.on_oom_exec[0] != '\0' &&
        bundles::needs_on_oom_command(recovered.bundle))
      bundles::run_on_oom(on_oom_command(options), recovered.bundle);
    if (options.quiet) continue;
    if (!recovered.problem.empty()) remark(recovered.problem);
    if (recovered.action != bundles::RecoveryAction::made) continue;
    // The program's own bundle is recovered last: `show` opens it as the newest.
    const std::vector<fs::path>& searched = directories.searched;
    const bool is_newest =
        is_program && std::find(searched.begin(), searched.end(), recovered.bundle.parent_path()) !=
                          searched.end();
    report_bundle(recovered.bundle, is_newest ? FoundAs::newest : FoundAs::path);
  }
}

// Reports a limit too low for the program to start, which its own message may not mention.
void report_failed_start(const std::vector<fs::path>& directories, const Ended& ended,
                         const Launched& launched) {
  const std::vector<bundles::BundleSummary> bundles = bundles::bundles_in(directories);
  const auto own =
      std::find_if(bundles.begin(), bundles.end(), [&](const bundles::BundleSummary& bundle) {
        return bundle.pid == static_cast<std::uint64_t>(ended.pid);
      });
  const bool not_loaded = WIFEXITED(ended.wait_status) && WEXITSTATUS(ended.wait_status) == 127;
  std::string line;
  if (own != bundles.end()) {
    line = failed_start_of(bundles::open_source(own->path), launched.options);
  } else if (not_loaded) {
    line = failed_load_of(launched.path, launched.words, launched.settings);
  }
  if (!line.empty()) remark(line);
}

}  // namespace

void report_exit(const Ended& ended, const deaths::DeathObservation& observed,
                 const Launched& launched) noexcept try {
  const Options& options = launched.options;
  const Directories directories{bundles::dump_directories(options.dump_dir),
                                bundles::dump_directories(), options.session_dir};
  // Recordings first: they hold more than the bundles.
  recover_own(directories, ended.pid, observed, options);
  complete_bundles(directories.dumps, ended.pid, observed);
  if (ended.wait_status != 0 && !options.quiet)
    report_failed_start(bundles::dump_directories(options.dump_dir), ended, launched);
} catch (const std::exception& error) {
  remark(error.what());
}

}  // namespace oomrec::tools::processes

#include "tools/processes/launch/exit_report.h"

#include <fmt/format.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
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
                      const deaths::Watched& watched) {
  for (const bundles::BundleSummary& bundle : bundles::bundles_in(directories)) {
    if (!bundle.open || bundle.pid != static_cast<std::uint64_t>(pid)) continue;
    const recording::Recording recording{bundle.path / bundles::kRecordingName};
    const bool recent =
        bundles::realtime_now_ns() - time_of_text(bundle.created_at_utc) < deaths::kFollowsWithinNs;
    bundles::complete_bundle(bundle.path, recording, deaths::ending_of(recording.view(), watched),
                             recent);
  }
}

// The program and the processes that it began, itself or through others that are recorded.
std::set<pid_t> family_of(pid_t program, const std::vector<bundles::Session>& sessions) {
  std::set<pid_t> family{program};
  for (std::size_t before = 0; before != family.size();) {
    before = family.size();
    for (const bundles::Session& session : sessions)
      if (family.contains(session.parent_pid)) family.insert(session.pid);
  }
  return family;
}

// The program's recordings and its descendants': other orphans are for the reading commands.
// `searched`: where they look that are started from where we were.
void recover_own(const std::vector<fs::path>& directories, const std::vector<fs::path>& searched,
                 pid_t pid, const deaths::Watched& watched, const Options& options) {
  const std::vector<bundles::Session> sessions = bundles::sessions_of(directories);
  const std::set<pid_t> family = family_of(pid, sessions);
  for (const bundles::Session& session : sessions) {
    if (session.alive || !family.contains(session.pid)) continue;
    const bundles::Recovered recovered =
        bundles::recover(session, {}, session.pid == pid ? watched : deaths::Watched{});
    const bool is_new =
        recovered.what == bundles::Recovery::made || recovered.what == bundles::Recovery::completed;
    if (is_new && options.on_oom_exec[0] != '\0' && bundles::is_kill_for_memory(recovered.bundle))
      bundles::run_on_oom(options.on_oom_exec, recovered.bundle, true);
    if (!options.quiet && !recovered.problem.empty()) remark(recovered.problem);
    if (options.quiet || recovered.what != bundles::Recovery::made) continue;
    const std::string path = printable(recovered.bundle.string());
    // The program's own is the last and so the newest, which show finds by itself.
    const bool is_found =
        session.pid == pid && std::find(searched.begin(), searched.end(),
                                        recovered.bundle.parent_path()) != searched.end();
    remark(fmt::format("bundle {}   read it with: oomrec show{}", path,
                       is_found ? "" : " " + shell_word(path)));
  }
}

// A limit that was too low for the program to begin is told: its own last words may not be clear.
void tell_early_end(const std::vector<fs::path>& directories, const Ended& ended,
                    const Launched& launched) {
  const std::vector<bundles::BundleSummary> bundles = bundles::bundles_in(directories);
  const auto own =
      std::find_if(bundles.begin(), bundles.end(), [&](const bundles::BundleSummary& bundle) {
        return bundle.pid == static_cast<std::uint64_t>(ended.pid);
      });
  const bool not_loaded = WIFEXITED(ended.wait_status) && WEXITSTATUS(ended.wait_status) == 127;
  std::string line;
  if (own != bundles.end()) {
    line = never_began(bundles::open_source(own->path), launched.options);
  } else if (not_loaded) {
    line = never_loaded(launched.path, launched.words, launched.settings);
  }
  if (!line.empty()) remark(line);
}

}  // namespace

void tell_the_end(const Ended& ended, const deaths::Watched& watched,
                  const Launched& launched) noexcept try {
  const std::vector<fs::path> searched = bundles::dump_directories();
  setenv("OOMREC_DUMP_DIR", launched.options.dump_dir, 1);
  setenv("OOMREC_SESSION_DIR", launched.options.session_dir, 1);
  const std::vector<fs::path> directories = bundles::dump_directories();
  // First what has a recording: that knows more.
  recover_own(directories, searched, ended.pid, watched, launched.options);
  complete_bundles(directories, ended.pid, watched);
  if (ended.wait_status != 0 && !launched.options.quiet)
    tell_early_end(bundles::dump_directories(), ended, launched);
} catch (const std::exception& error) {
  remark(error.what());
}

}  // namespace oomrec::tools::processes

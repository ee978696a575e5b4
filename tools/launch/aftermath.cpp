#include "tools/launch/aftermath.h"

#include <fmt/format.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "recorder/bundle/bundle.h"
#include "tools/bundles/bundles.h"
#include "tools/bundles/on_oom.h"
#include "tools/bundles/orphans.h"
#include "tools/bundles/outcome.h"
#include "tools/launch/early_end.h"
#include "tools/log.h"
#include "tools/text.h"

namespace oomrec::tools {
namespace {

namespace fs = std::filesystem;

End end_of(int wait_status) {
  if (WIFSIGNALED(wait_status)) return {OutcomeKind::signal, WTERMSIG(wait_status)};
  const int exit_status = WEXITSTATUS(wait_status);
  return exit_status == 0 ? End{OutcomeKind::recovered, 0} : End{OutcomeKind::exited, exit_status};
}

void complete_bundles(const std::vector<fs::path>& directories, const Ended& ended,
                      const End& end) {
  const auto workspace = std::make_unique<bundle::Workspace>();
  for (const BundleSummary& bundle : bundles_in(directories)) {
    if (!bundle.open || bundle.pid != static_cast<std::uint64_t>(ended.pid)) continue;
    const bool follows = realtime_now_ns() - time_of_text(bundle.created_at_utc) < kFollowsWithinNs;
    const End outcome = follows ? end : End{OutcomeKind::recovered, 0};
    bundle::complete(OutsideHooks::in_hook(), bundle.path.c_str(), {outcome.outcome, outcome.value},
                     *workspace);
  }
}

// Its own recordings only: other orphans are for the reading commands. `searched`: where they look
// that are started from where we were.
void recover_own(const std::vector<fs::path>& directories, const std::vector<fs::path>& searched,
                 const Ended& ended, const End& end, const Options& options) {
  for (const Session& session : sessions_of(directories)) {
    if (session.alive || session.pid != ended.pid) continue;
    const Recovered recovered = recover(session, {}, end);
    const bool is_new = recovered.what == Recovery::made || recovered.what == Recovery::completed;
    if (is_new && options.on_oom_exec[0] != '\0' && is_kill_for_memory(recovered.bundle))
      run_on_oom(options.on_oom_exec, recovered.bundle, true);
    if (options.quiet || recovered.what != Recovery::made) continue;
    const std::string path = printable(recovered.bundle.string());
    const bool is_found = std::find(searched.begin(), searched.end(),
                                    recovered.bundle.parent_path()) != searched.end();
    remark(
        fmt::format("bundle {}   read it with: oomrec show{}", path, is_found ? "" : " " + path));
  }
}

// A limit that was too low for the program to begin is told: its own last words may not be clear.
void tell_early_end(const std::vector<fs::path>& directories, const Ended& ended,
                    const Launched& launched) {
  const std::vector<BundleSummary> bundles = bundles_in(directories);
  const auto own = std::find_if(bundles.begin(), bundles.end(), [&](const BundleSummary& bundle) {
    return bundle.pid == static_cast<std::uint64_t>(ended.pid);
  });
  const bool not_loaded = WIFEXITED(ended.wait_status) && WEXITSTATUS(ended.wait_status) == 127;
  std::string line;
  if (own != bundles.end()) {
    line = never_began(open_source(own->path), launched.options);
  } else if (not_loaded) {
    line = never_loaded(launched.path, launched.words, launched.settings);
  }
  if (!line.empty()) remark(line);
}

}  // namespace

void tell_the_end(const Ended& ended, const Launched& launched) noexcept try {
  const std::vector<fs::path> searched = dump_directories();
  setenv("OOMREC_DUMP_DIR", launched.options.dump_dir, 1);
  setenv("OOMREC_SESSION_DIR", launched.options.session_dir, 1);
  const End end = end_of(ended.wait_status);
  const std::vector<fs::path> directories = dump_directories();
  // First what has a recording: that knows more.
  recover_own(directories, searched, ended, end, launched.options);
  complete_bundles(directories, ended, end);
  if (ended.wait_status != 0 && !launched.options.quiet)
    tell_early_end(dump_directories(), ended, launched);
} catch (const std::exception& error) {
  remark(error.what());
}

}  // namespace oomrec::tools

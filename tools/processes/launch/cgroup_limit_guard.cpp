#include "tools/processes/launch/cgroup_limit_guard.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <memory>

#include "tools/base/directory.h"
#include "tools/base/error.h"
#include "tools/base/large_stack.h"
#include "tools/base/log.h"
#include "tools/base/text.h"
#include "tools/bundles/recover/orphans.h"
#include "tools/bundles/store/writing.h"
#include "tools/deaths/current_health.h"
#include "tools/recording/live/outside_look.h"
#include "tools/recording/reading/recording.h"

namespace oomrec::tools::processes {
namespace {

struct Candidate {
  std::unique_ptr<recording::Recording> recording;
  std::uint64_t bytes;
};

}  // namespace

CgroupLimitGuard::CgroupLimitGuard(const ProgramCgroup& cgroup, const Options& options)
    : cgroup_(cgroup),
      dump_directories_{absolute_path(options.dump_dir)},
      session_directory_(options.session_dir),
      quiet_(options.quiet) {
  // Signals must reach the thread that forwards them.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread{[this] {
    if (!cgroup_.wait_for_limit()) return;
    try {
      on_large_stack([this] { write_bundle(); });
    } catch (const std::exception& error) {
      remark(error.what());
    }
    cgroup_.release();
  }};
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

CgroupLimitGuard::~CgroupLimitGuard() {
  cgroup_.stop_waiting();
  thread_.join();
}

// Writes the bundle of the largest recorded process in the cgroup. The bundle lists the others.
void CgroupLimitGuard::write_bundle() const {
  const std::vector<pid_t> processes = cgroup_.processes();
  Candidate largest{};
  for (const bundles::Session& session :
       bundles::sessions_of(dump_directories_, session_directory_)) {
    const bool inside =
        std::find(processes.begin(), processes.end(), session.pid) != processes.end();
    if (!session.alive || !inside) continue;
    recording::enter_look(session.path, session.pid);
    auto recording = std::make_unique<recording::Recording>(session.path);
    const std::uint64_t bytes = recording->held_bytes();
    if (largest.recording == nullptr || bytes > largest.bytes)
      largest = {std::move(recording), bytes};
  }
  if (largest.recording == nullptr) return;

  const std::string directory = largest.recording->text(largest.recording->header().dump_directory);
  bundle::Cause cause;
  cause.trigger = Trigger::near_limit;
  const auto health = deaths::current_health(largest.recording->view());
  cause.health = health.get();
  const bundles::WriteResult written = bundles::write_bundle(*largest.recording, cause, directory);
  if (written.bundle.empty()) {
    remark(written.problem);
  } else if (!quiet_) {
    remark(fmt::format("the program reached its cgroup's limit of {}: bundle {}",
                       size_text(cgroup_.bytes()), printable(written.bundle.string())));
  }
}

}  // namespace oomrec::tools::processes

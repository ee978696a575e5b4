#include "tools/bundles/store/process_tree.h"

#include <fmt/format.h>
#include <sys/wait.h>

#include <csignal>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "common/bundle/session_summary.h"
#include "common/session/directories.h"
#include "common/system/files.h"
#include "common/system/text.h"
#include "tools/base/directory.h"
#include "tools/base/error.h"
#include "tools/bundles/store/access.h"
#include "tools/bundles/store/bundles.h"
#include "tools/deaths/ending.h"
#include "tools/deaths/evidence.h"
#include "tools/recording/reading/events.h"

namespace oomrec::tools::bundles {
namespace {

namespace fs = std::filesystem;
using session::EndedChild;
using session::Header;

// The recording that a directory entry is or contains; empty if neither.
fs::path recording_at(const fs::directory_entry& entry) {
  std::error_code error;
  if (entry.path().extension() == session::kFileSuffix) return entry.path();
  return entry.is_directory(error) ? entry.path() / kRecordingName : fs::path{};
}

// Pids are reused: the first end with this pid after the child's start is the child's.
const EndedChild* end_of(const Header& child, const Header& parent) {
  const EndedChild* first = nullptr;
  for (const EndedChild& ended : parent.ended) {
    if (ended.pid == child.pid && ended.time_ns > child.start_monotonic_ns &&
        (first == nullptr || ended.time_ns < first->time_ns))
      first = &ended;
  }
  return first;
}

}  // namespace

bool is_parent(const Header& parent, const Header& child) {
  return parent.pid == child.parent_pid && parent.start_ticks <= child.start_ticks &&
         bundle::have_comparable_pids(parent, child);
}

void for_each_recording(const std::vector<fs::path>& directories, const RecordingVisitor& visit) {
  const auto header = std::make_unique<Header>();
  for (const fs::path& directory : directories) {
    for (const fs::directory_entry& entry : entries_of(directory)) {
      const fs::path recording = recording_at(entry);
      if (recording.empty()) continue;
      const OwnFile file{recording};
      if (file.is_ours() && file.read_header(*header)) visit(recording, *header);
    }
  }
}

namespace {

// Visits what wait() returned to the recorded parents of `child`.
using WaitVisitor = std::function<void(const fs::path&, const Header& parent, const EndedChild&)>;
void for_each_wait(const Header& child, const std::vector<fs::path>& directories,
                   const WaitVisitor& visit) {
  for_each_recording(directories, [&](const fs::path& path, const Header& parent) {
    const EndedChild* const end = is_parent(parent, child) ? end_of(child, parent) : nullptr;
    if (end != nullptr) visit(path, parent, *end);
  });
}

struct Wait {
  int status;
  std::uint64_t realtime_ns;
};

// The signal that ended the child, from the events of its parent: the table of ended children has
// the first of many that end together, the rings the latest. Nothing: it is in neither.
std::optional<Wait> wait_in_events(const recording::Recording& parent, const Header& child) {
  const Header& header = parent.header();
  constexpr std::uint64_t kClockLagMs = 1000;  // events have the time of the thread's last look
  const std::uint64_t start_ms = (child.start_monotonic_ns - header.start_monotonic_ns) / 1'000'000;
  std::optional<Wait> first;
  recording::for_each_event(parent.view(), [&](const session::Event& event) {
    if (first || event.kind != EventKind::mark || event.api != Api::fork ||
        event.address != static_cast<std::uint64_t>(child.pid) ||
        event.time_ms + kClockLagMs < start_ms || !WIFSIGNALED(static_cast<int>(event.bytes)))
      return;
    first = Wait{static_cast<int>(event.bytes),
                 header.start_realtime_ns + std::uint64_t{event.time_ms} * 1'000'000};
  });
  return first;
}

}  // namespace

deaths::DeathObservation with_wait_status_from_parent(deaths::DeathObservation observed,
                                                      const Header& child,
                                                      const std::vector<fs::path>& directories) {
  if (observed.wait_status) return observed;
  for_each_wait(child, directories,
                [&](const fs::path&, const Header& parent, const EndedChild& end) {
                  if (observed.wait_status) return;
                  observed.wait_status = end.wait_status;
                  observed.realtime_ns =
                      parent.start_realtime_ns + (end.time_ns.load() - parent.start_monotonic_ns);
                });
  if (observed.wait_status) return observed;
  for_each_recording(directories, [&](const fs::path& path, const Header& parent) {
    if (observed.wait_status || !is_parent(parent, child) ||
        parent.ended_count.load() < session::kEndedChildren)
      return;
    try {
      if (const auto wait = wait_in_events(recording::Recording{path}, child)) {
        observed.wait_status = wait->status;
        observed.realtime_ns = wait->realtime_ns;
      }
    } catch (const Error&) {
      return;  // deleted meanwhile
    }
  });
  return observed;
}

bool lost_another(const Header& parent, const Header& child, std::uint64_t within_ns) {
  constexpr std::uint64_t kClockStepNs = 10'000'000;  // of the start, which is by a coarse clock
  const EndedChild* const own = end_of(child, parent);
  for (const EndedChild& ended : parent.ended) {
    const std::uint64_t time_ns = ended.time_ns;
    if (time_ns > child.start_monotonic_ns + kClockStepNs && ended.pid != child.pid &&
        WIFSIGNALED(ended.wait_status) && WTERMSIG(ended.wait_status) != SIGTERM &&
        (own == nullptr || (time_ns <= own->time_ns && own->time_ns - time_ns <= within_ns)))
      return true;
  }
  return false;
}

namespace {

constexpr std::string_view kRun = "run-";

}  // namespace

std::string name_of_run(std::int32_t launcher, std::uint64_t realtime_ns) {
  return fmt::format("{}{}-{}", kRun, launcher, realtime_ns);
}

std::int32_t gone_launcher_of(const recording::Recording& recording) {
  const Header& header = recording.header();
  const std::string run = recording.text(header.process_tree);
  if (!run.starts_with(kRun) || header.pid_namespace != system::pid_namespace() ||
      !deaths::is_this_boot(header))
    return 0;
  const auto pid =
      static_cast<std::int32_t>(system::number_in(std::string_view{run}.substr(kRun.size())));
  if (pid == 0 || pid != header.parent_pid) return 0;
  const std::uint64_t started = system::start_ticks(pid);
  const bool is_there =
      started != 0 && started <= header.start_ticks && !deaths::status_of_zombie(pid, started);
  return is_there ? 0 : pid;
}

bool other_rank_ran_short(const Header& rank, const std::vector<fs::path>& directories) {
  if (rank.rank.known == 0) return false;
  bool ran_short = false;
  for_each_recording(directories, [&](const fs::path&, const Header& other) {
    const bool is_sibling = other.rank.known != 0 && other.rank.rank != rank.rank.rank &&
                            other.parent_pid == rank.parent_pid &&
                            bundle::have_comparable_pids(other, rank);
    ran_short |= is_sibling && other.failures_total != 0;
    ran_short |= is_parent(other, rank) && lost_another(other, rank, session::kUnlimited);
  });
  return ran_short;
}

bool was_terminated_by_parent(const recording::Recording& worker,
                              const std::vector<fs::path>& directories) {
  bool terminated = false;
  for_each_wait(worker.header(), directories,
                [&](const fs::path& path, const Header&, const EndedChild& end) {
                  if (!WIFSIGNALED(end.wait_status) || WTERMSIG(end.wait_status) != SIGTERM) return;
                  try {
                    const recording::Recording parent{path};
                    terminated |= parent.text(parent.header().executable) ==
                                  worker.text(worker.header().executable);
                  } catch (const Error&) {
                    return;  // deleted meanwhile
                  }
                });
  return terminated;
}

}  // namespace oomrec::tools::bundles

#include "tools/bundles/store/process_tree.h"

#include <sys/wait.h>

#include <csignal>
#include <memory>

#include "common/bundle/session_summary.h"
#include "common/session/directories.h"
#include "tools/base/error.h"
#include "tools/bundles/store/bundles.h"
#include "tools/bundles/store/own_file.h"

namespace oomrec::tools::bundles {
namespace {

namespace fs = std::filesystem;
using session::EndedChild;
using session::Header;

// The recording that an entry of a directory is, or holds; empty: neither.
fs::path recording_at(const fs::directory_entry& entry) {
  std::error_code error;
  if (entry.path().extension() == session::kFileSuffix) return entry.path();
  return entry.is_directory(error) ? entry.path() / kRecordingName : fs::path{};
}

// Another process may have had the number before: what came first after its beginning is meant.
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
         bundle::counts_pids_alike(parent, child);
}

void for_each_recording(const std::vector<fs::path>& directories, const Look& look) {
  const auto header = std::make_unique<Header>();
  for (const fs::path& directory : directories) {
    std::error_code error;
    for (fs::directory_iterator at{directory, error}, end; !error && at != end;
         at.increment(error)) {
      const fs::path recording = recording_at(*at);
      if (recording.empty()) continue;
      const OwnFile file{recording};
      if (file.ours() && file.read_header(*header)) look(recording, *header);
    }
  }
}

namespace {

// What the recorded parents of `child` were told when they waited for it.
using Tell = std::function<void(const fs::path&, const Header& parent, const EndedChild&)>;
void for_each_word(const Header& child, const std::vector<fs::path>& directories,
                   const Tell& tell) {
  for_each_recording(directories, [&](const fs::path& path, const Header& parent) {
    const EndedChild* const end = is_parent(parent, child) ? end_of(child, parent) : nullptr;
    if (end != nullptr) tell(path, parent, *end);
  });
}

}  // namespace

deaths::Watched with_word_of_parent(deaths::Watched watched, const Header& child,
                                    const std::vector<fs::path>& directories) {
  if (watched.wait_status) return watched;
  for_each_word(child, directories,
                [&](const fs::path&, const Header& parent, const EndedChild& end) {
                  if (watched.wait_status) return;
                  watched.wait_status = end.wait_status;
                  watched.realtime_ns =
                      parent.start_realtime_ns + (end.time_ns.load() - parent.start_monotonic_ns);
                });
  return watched;
}

bool other_rank_was_short(const Header& rank, const std::vector<fs::path>& directories) {
  if (rank.rank.known == 0) return false;
  bool was_short = false;
  for_each_recording(directories, [&](const fs::path&, const Header& other) {
    const bool beside = other.rank.known != 0 && other.rank.rank != rank.rank.rank &&
                        other.parent_pid == rank.parent_pid &&
                        bundle::counts_pids_alike(other, rank);
    was_short |= beside && other.failures_total != 0;
    if (!is_parent(other, rank)) return;
    const EndedChild* const own = end_of(rank, other);
    for (const EndedChild& ended : other.ended) {
      const bool killed = ended.time_ns != 0 && WIFSIGNALED(ended.wait_status) &&
                          WTERMSIG(ended.wait_status) != SIGTERM;
      was_short |= killed && ended.pid != rank.pid && ended.time_ns > rank.start_monotonic_ns &&
                   (own == nullptr || ended.time_ns <= own->time_ns);
    }
  });
  return was_short;
}

bool was_dismissed(const recording::Recording& worker, const std::vector<fs::path>& directories) {
  bool dismissed = false;
  for_each_word(worker.header(), directories,
                [&](const fs::path& path, const Header&, const EndedChild& end) {
                  if (!WIFSIGNALED(end.wait_status) || WTERMSIG(end.wait_status) != SIGTERM) return;
                  try {
                    const recording::Recording parent{path};
                    dismissed |= parent.text(parent.header().executable) ==
                                 worker.text(worker.header().executable);
                  } catch (const Error&) {
                    return;  // gone meanwhile
                  }
                });
  return dismissed;
}

}  // namespace oomrec::tools::bundles

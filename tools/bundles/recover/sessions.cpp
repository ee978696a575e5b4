#include "tools/bundles/recover/sessions.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "common/session/directories.h"
#include "common/session/view.h"
#include "tools/base/directory.h"
#include "tools/base/environment.h"
#include "tools/bundles/store/access.h"

namespace oomrec::tools::bundles {

namespace fs = std::filesystem;

namespace {

// Empty if the file is not a session of this user, or not yet.
std::optional<Session> session_in(const fs::path& path) {
  const OwnFile file{path};
  if (path.extension() != session::kFileSuffix || !file.is_ours()) return std::nullopt;
  const auto header = std::make_unique<session::Header>();
  Session found{path};
  found.unfinished = !file.read_header(*header);
  if (found.unfinished && !file.was_never_completed(path)) return std::nullopt;
  const session::Creator creator = session::creator_of(path.filename().native());
  found.pid = found.unfinished ? creator.pid : header->pid;
  found.parent_pid = header->parent_pid;
  found.start_ticks = found.unfinished ? creator.start_ticks : header->start_ticks;
  found.start_monotonic_ns = header->start_monotonic_ns;
  found.alive =
      !found.unfinished && session::life_of(session::HeaderStart{*header}) == session::Life::alive;
  found.writable = access(path.parent_path().c_str(), W_OK) == 0;
  return found;
}

using ParentPids = std::unordered_map<std::int32_t, std::int32_t>;

// How many of its ancestors are in `parents`; at most 64, as reused pids may form a ring.
int ancestors_of(const Session& session, const ParentPids& parents) {
  constexpr int kMost = 64;
  int count = 0;
  for (auto of = parents.find(session.parent_pid); of != parents.end() && count != kMost; ++count)
    of = parents.find(of->second);
  return count;
}

// The clocks are coarse: what starts within some milliseconds starts at once by them, and a worker
// is younger than its parent then.
void sort_youngest_first(std::vector<Session>& sessions) {
  ParentPids parents;
  for (const Session& session : sessions) parents[session.pid] = session.parent_pid;
  const auto start = [](const Session& session) {
    return std::pair{session.start_ticks, session.start_monotonic_ns};
  };
  std::ranges::stable_sort(sessions, [&](const Session& a, const Session& b) {
    return start(a) != start(b) ? start(a) > start(b)
                                : ancestors_of(a, parents) > ancestors_of(b, parents);
  });
}

}  // namespace

fs::path session_directory_from_environment() { return environment_variable("OOMREC_SESSION_DIR"); }

std::vector<fs::path> session_directories(const std::vector<fs::path>& dump_directories,
                                          const fs::path& named) {
  std::vector<fs::path> directories;
  std::vector<std::string> dumps = {""};
  for (const fs::path& dump : dump_directories) dumps.push_back(dump.string());
  for (const std::string& dump : dumps) {
    session::DirectoryOptions options;
    options.session_directory = named.c_str();
    options.dump_directory = dump.c_str();
    char buffer[4096];
    system::Text path{buffer};
    session::find_directory(options, path, [&](const session::Directory&) {
      directories.emplace_back(fs::path{path.c_str()}.lexically_normal());
      return false;
    });
  }
  std::ranges::sort(directories);
  directories.erase(std::unique(directories.begin(), directories.end()), directories.end());
  return directories;
}

std::vector<Session> sessions_of(const std::vector<fs::path>& dump_directories,
                                 const fs::path& named) {
  std::vector<Session> sessions;
  for (const fs::path& directory : session_directories(dump_directories, named)) {
    if (!session::open_own_directory(directory.c_str(), session::IfMissing::fail).is_open())
      continue;
    for (const fs::path& path : entries_of(directory))
      if (std::optional<Session> session = session_in(path))
        sessions.push_back(std::move(*session));
  }
  sort_youngest_first(sessions);
  return sessions;
}

}  // namespace oomrec::tools::bundles

#include "tools/bundles/recover/sessions.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "common/session/directories.h"
#include "common/session/view.h"
#include "tools/base/directory.h"
#include "tools/bundles/store/own_file.h"

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

}  // namespace

fs::path session_directory_from_environment() {
  const char* const named = std::getenv("OOMREC_SESSION_DIR");
  return named != nullptr ? named : "";
}

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
  std::sort(directories.begin(), directories.end());
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
  std::stable_sort(sessions.begin(), sessions.end(), [](const Session& a, const Session& b) {
    return std::pair{a.start_ticks, a.start_monotonic_ns} >
           std::pair{b.start_ticks, b.start_monotonic_ns};
  });
  return sessions;
}

}  // namespace oomrec::tools::bundles

// The directories that `oomrec watch` watches.
#pragma once

#include <filesystem>
#include <vector>

#include "tools/bundles/recover/sessions.h"

namespace oomrec::tools::service {

struct WatchedDirectories {
  std::vector<std::filesystem::path> dumps;
  std::filesystem::path named_session;  // OOMREC_SESSION_DIR, or the one given to `oomrec watch`
  // Not those that the recorder chooses by default: the user named the only one.
  bool only_named = false;

  std::vector<bundles::Session> sessions() const {
    std::vector<bundles::Session> sessions = bundles::sessions_of(dumps, named_session);
    std::erase_if(sessions, [&](const bundles::Session& session) {
      return !is_watched(session.path.parent_path());
    });
    return sessions;
  }
  std::vector<std::filesystem::path> of_sessions() const {
    std::vector<std::filesystem::path> directories =
        bundles::session_directories(dumps, named_session);
    std::erase_if(directories,
                  [&](const std::filesystem::path& path) { return !is_watched(path); });
    return directories;
  }

 private:
  // `own`: the user's own directory in one of those that sessions may be in.
  bool is_watched(const std::filesystem::path& own) const {
    return !only_named || own.parent_path() == named_session;
  }
};

}  // namespace oomrec::tools::service

// The directories that `oomrec watch` watches, and the bundles that were written there since it
// began.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "common/session/vocabulary.h"
#include "tools/bundles/recover/sessions.h"

namespace oomrec::tools::service {

struct NewBundle {
  std::filesystem::path path;
  Trigger trigger = Trigger::none;
  std::string process;  // as in manifests: process_key()
  std::string program;
  std::string rank;  // empty: none
};

class NewBundles {
 public:
  // Ignores the bundles that these directories contain now.
  explicit NewBundles(const std::set<std::filesystem::path>& directories);

  std::vector<NewBundle> take_new(const std::set<std::filesystem::path>& directories);

 private:
  const std::uint64_t watch_start_s_;                            // since 1970
  std::map<std::filesystem::path, std::set<std::string>> seen_;  // names, by directory
};

// The directories that `oomrec watch` watches.
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

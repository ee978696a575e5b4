// The directories that `oomrec watch` watches.
#pragma once

#include <filesystem>
#include <vector>

#include "tools/bundles/recover/sessions.h"

namespace oomrec::tools::service {

struct WatchedDirectories {
  std::vector<std::filesystem::path> dumps;
  std::filesystem::path named_session;  // OOMREC_SESSION_DIR, or the one given to `oomrec watch`

  std::vector<bundles::Session> sessions() const {
    return bundles::sessions_of(dumps, named_session);
  }
  std::vector<std::filesystem::path> of_sessions() const {
    return bundles::session_directories(dumps, named_session);
  }
};

}  // namespace oomrec::tools::service

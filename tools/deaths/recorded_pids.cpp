#include "tools/deaths/recorded_pids.h"

#include <fmt/format.h>

#include <cstdlib>
#include <fstream>
#include <string>

#include "common/session/directories.h"
#include "common/system/files.h"
#include "tools/base/directory.h"

namespace oomrec::tools::deaths {

std::set<std::uint64_t> recorded_pids(const session::View& view) {
  std::set<std::uint64_t> pids;
  if (view.header().off_reason == 0) pids.insert(static_cast<std::uint64_t>(view.header().pid));
  const std::string dumps{view.string(view.header().dump_directory)};
  session::DirectoryOptions options;
  options.session_directory = std::getenv("OOMREC_SESSION_DIR");
  options.dump_directory = dumps.empty() ? nullptr : dumps.c_str();
  char buffer[4096] = {};
  system::Text path{buffer};
  session::find_directory(options, path, [&](const session::Directory&) {
    // Another user could claim any process by files with such names.
    if (!session::open_own_directory(buffer, session::IfMissing::fail).is_open()) return false;
    for (const std::filesystem::path& file : entries_of(buffer)) {
      const session::Creator creator = session::creator_of(file.filename().native());
      const std::uint64_t now = creator.pid != 0 ? system::start_ticks(creator.pid) : 0;
      const bool is_reused = now != 0 && now != creator.start_ticks;
      if (creator.pid != 0 && !is_reused) pids.insert(static_cast<std::uint64_t>(creator.pid));
    }
    return false;
  });
  return pids;
}

bool has_recorder(std::uint64_t pid) {
  std::ifstream mappings{fmt::format("{}/{}/maps", system::g_roots.proc, pid)};
  for (std::string line; std::getline(mappings, line);)
    if (line.ends_with("/liboomrec.so")) return true;
  return false;
}

}  // namespace oomrec::tools::deaths

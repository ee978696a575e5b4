#include "tools/service/watch/new_files.h"

#include <sys/inotify.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

namespace oomrec::tools::service {

namespace fs = std::filesystem;

NewFiles::NewFiles() : descriptor_(inotify_init1(IN_CLOEXEC | IN_NONBLOCK)) {}

// For a missing directory, watches its nearest existing ancestor. inotify does not report what was
// created there before the watch began, so in that case tries the directory again.
void NewFiles::watch(const fs::path& directory) {
  if (descriptor_ < 0) return;
  constexpr std::uint32_t kNew = IN_CREATE | IN_MOVED_TO | IN_MASK_ADD;
  for (bool created_meanwhile = true; created_meanwhile;) {
    std::string awaited;
    fs::path watched = directory;
    int watch = inotify_add_watch(descriptor_, watched.c_str(), kNew);
    while (watch < 0 && errno == ENOENT && watched.has_relative_path()) {
      awaited = watched.filename();
      watched = watched.parent_path();
      watch = inotify_add_watch(descriptor_, watched.c_str(), kNew);
    }
    if (watch < 0) return;
    awaited_[watch].insert(awaited);
    std::error_code error;
    created_meanwhile = !awaited.empty() && fs::exists(watched / awaited, error);
  }
}

bool NewFiles::read_events() {
  alignas(inotify_event) char events[4096];
  bool any = false;
  for (ssize_t bytes = 0; (bytes = read(descriptor_, events, sizeof events)) > 0;) {
    for (const char* at = events; at < events + bytes;) {
      const auto* const event = reinterpret_cast<const inotify_event*>(at);
      const Names& awaited = awaited_[event->wd];
      any = any || awaited.contains("") || (event->len != 0 && awaited.contains(event->name));
      at += sizeof(inotify_event) + event->len;
    }
  }
  return any;
}

}  // namespace oomrec::tools::service

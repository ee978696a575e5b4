// Maps a session's file read-only, while its process keeps writing it. Nothing is copied.
//
// The owner may truncate the file at any time: reading a page that is gone raises SIGBUS. In these
// mappings a handler replaces such a page by zeroes, which read as absent entries.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>

namespace oomrec::tools::recording {

struct MappedFile {
  std::shared_ptr<const std::byte> bytes;  // empty: mapping failed, see errno
  std::uint64_t size = 0;
};

MappedFile map_file(const std::filesystem::path& file);

// A look at the pages of a process that its cgroup has paused, entered in its session as if it had
// looked itself (recorder/state/looks.h): the pages as they are when it is killed.

// False: its session has no memory for it (the process began without a limit of its cgroup, and has
// never looked), or its pages or its session may not be read. `session`: of a process that does not
// run; `pid`: in our namespace.
bool enter_look(const std::filesystem::path& session, pid_t pid);

}  // namespace oomrec::tools::recording

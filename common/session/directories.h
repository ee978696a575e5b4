// The directories of session files, for the writer that creates one and for the commands that
// search for orphans.
//
// Each directory belongs to the user: oomrec-UID, mode 0700, owner checked, never reached through a
// symbolic link. That makes /tmp and /dev/shm safe to use. Another user may take the name there:
// then the directory is one of the spare names oomrec-UID.1 to oomrec-UID.9. A reader of any
// process searches all names, since it cannot know which were taken when the process started.
#pragma once

#include <cerrno>
#include <cstdint>

#include "common/system/files.h"
#include "common/system/text.h"

namespace oomrec::session {

// In the order of preference.
enum class DirectoryKind : std::uint8_t {
  session_directory,    // set by the user for sessions
  dump_directory,       // set by the user for bundles: if it exists and is local
  shared_memory,        // /dev/shm: if the budget is at most an eighth of its free space
  temporary,            // TMPDIR or /tmp
  runtime,              // XDG_RUNTIME_DIR or /run/user/UID, as /dev/shm; gone after a logout
  spare_shared_memory,  // kSpareNames in /dev/shm, if another user has taken the first name
  spare_temporary,      // kSpareNames in TMPDIR or /tmp, likewise
  count_
};
inline constexpr unsigned kSpareNames = 9;
inline constexpr const char* kFileSuffix = ".session";

// Limits on the sessions of dead processes; beyond them the oldest are removed. A server may lose
// all its workers at once, before anyone can make bundles of them.
inline constexpr unsigned kMaxDeadSessions = 256;
inline constexpr std::uint64_t kMaxDeadBytes = std::uint64_t{256} << 20;

struct DirectoryOptions {
  const char* session_directory = nullptr;
  const char* dump_directory = nullptr;
  std::uint64_t budget_bytes = 0;  // 0: for reading only
};

// One of the user's own directories; its path is `path`, or the kind is not usable.
struct Directory {
  DirectoryKind kind;
  unsigned spare;  // 1 to kSpareNames; 0: the first name
  system::Text& path;
};

// Calls visit(const Directory&) for each usable directory, in the order of preference, until it
// returns true. Returns whether it did. `path`: receives each path.
template <class Visit>
bool find_directory(const DirectoryOptions& options, system::Text& path, Visit&& visit) noexcept;

// Opens the user's own directory, whose path is from find_directory(). Not open, with an errno, if
// it cannot be used; with kTaken if what has the name is not a directory of this user.
inline constexpr int kTaken = EEXIST;
enum class IfMissing : std::uint8_t { fail, create };
system::File open_own_directory(const char* path, IfMissing) noexcept;

// The process that created a session's file, from the file's name; pid 0: not one of our names.
struct Creator {
  std::int32_t pid = 0;
  std::uint64_t start_ticks = 0;
};
Creator creator_of(std::string_view file_name) noexcept;

// Whether a file that is not yet a session will never become one, because its process was killed in
// its first milliseconds. That process must be invisible, and the file too old to be in use by a
// process of another pid namespace that is just starting. Reads /proc.
bool was_never_completed(const Creator&, std::int64_t modified_s) noexcept;

// Removes sessions of dead processes that contain nothing of interest, and the oldest of the others
// beyond the limits. Reads the start of each file. `scratch`: at least 32 KiB of memory.
void enforce_dead_budget(const system::File& directory, char* scratch,
                         std::size_t scratch_bytes) noexcept;

// --- Implementation -----------------------------------------------------------------------------

bool directory_in(const Directory&, const DirectoryOptions&) noexcept;

template <class Visit>
bool find_directory(const DirectoryOptions& options, system::Text& path, Visit&& visit) noexcept {
  for (unsigned number = 0; number < static_cast<unsigned>(DirectoryKind::count_); ++number) {
    const auto kind = static_cast<DirectoryKind>(number);
    const bool is_spare = kind >= DirectoryKind::spare_shared_memory;
    for (unsigned spare = is_spare ? 1 : 0; spare <= (is_spare ? kSpareNames : 0); ++spare) {
      const Directory directory{kind, spare, path};
      if (directory_in(directory, options) && visit(directory)) return true;
    }
  }
  return false;
}

}  // namespace oomrec::session

// Where session files are: for the writer that makes one and for the commands that look for
// orphans.
//
// In each place they stand in a directory of the user's own, oomrec-UID: mode 0700, its owner
// checked, never reached through a symbolic link, so that /tmp and /dev/shm are safe to use.
#pragma once

#include <cstdint>

#include "common/system/files.h"
#include "common/system/text.h"

namespace oomrec::session {

// In the order in which they are tried.
enum class Place : std::uint8_t {
  session_directory,  // named by the user for this
  dump_directory,     // named by the user for bundles: if it exists and is local
  shared_memory,      // /dev/shm: if the budget is at most an eighth of what is free
  temporary,          // TMPDIR or /tmp
  count_
};
inline constexpr const char* kFileSuffix = ".session";

// Sessions are small in number: beyond these, the oldest of dead processes go.
inline constexpr unsigned kMaxDeadSessions = 20;
inline constexpr std::uint64_t kMaxDeadBytes = std::uint64_t{256} << 20;

struct Wishes {
  const char* session_directory = nullptr;
  const char* dump_directory = nullptr;
  std::uint64_t budget_bytes = 0;  // 0: only looking
};

// The path of the user's own directory in `place`; false where it is not to be used.
bool directory_in(Place place, const Wishes& wishes, system::Text& path) noexcept;

// Opens the user's own directory, which directory_in() named; `create` makes it first. Not open,
// with an errno, when it is somebody else's or no directory.
system::File open_own_directory(const char* path, bool create) noexcept;

// The process that made a session's file, by the file's name; pid 0: the name is none of ours.
struct Maker {
  std::int32_t pid = 0;
  std::uint64_t start_ticks = 0;
};
Maker maker_of(std::string_view file_name) noexcept;

// Whether a file that is not yet a session will never be one: its process was killed in its first
// milliseconds. That process must be out of sight, and the file too old to be one that a process of
// another pid namespace is just making. Reads /proc.
bool never_began(const Maker&, std::int64_t modified_s) noexcept;

// Removes the sessions of dead processes that nobody would read, and the oldest of the others
// beyond the two bounds. Reads the first bytes of each file there; `scratch` is memory to work in,
// at least 32 KiB.
void enforce_dead_budget(const system::File& directory, char* scratch,
                         std::size_t scratch_bytes) noexcept;

}  // namespace oomrec::session

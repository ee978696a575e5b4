// Finds this user's session files: one for each recorded process, alive or dead.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

namespace oomrec::tools::bundles {

struct Session {
  std::filesystem::path path;
  std::int32_t pid = 0;
  std::int32_t parent_pid = 0;
  std::uint64_t start_ticks = 0;         // start of the process
  std::uint64_t start_monotonic_ns = 0;  // start of the recording
  bool alive = false;
  bool writable = false;    // can be deleted: its directory is writable
  bool unfinished = false;  // its process was killed before it had written the header
};

// OOMREC_SESSION_DIR; empty if not set.
std::filesystem::path session_directory_from_environment();

// The directories that the recorder would choose for a program with one of these dump directories
// and this OOMREC_SESSION_DIR, `named` (docs/how-it-works.md).
std::vector<std::filesystem::path> session_directories(
    const std::vector<std::filesystem::path>& dump_directories,
    const std::filesystem::path& named = session_directory_from_environment());

// The sessions in those directories, youngest process first: workers are recovered before their
// parent, whose verdict may depend on how they ended.
std::vector<Session> sessions_of(
    const std::vector<std::filesystem::path>& dump_directories,
    const std::filesystem::path& named = session_directory_from_environment());

}  // namespace oomrec::tools::bundles

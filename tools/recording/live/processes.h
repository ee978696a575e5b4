// Finds running processes that are recorded, and opens their sessions.
//
// A session is found in the mappings of its process, so the user need not name its directory. It is
// read from outside, without disturbing the process.
#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tools/recording/reading/recording.h"
#include "tools/recording/symbolize/cached_symbols.h"

namespace oomrec::tools::recording {

struct LiveProcess {
  pid_t pid = 0;  // in our pid namespace; the process may be in another one
  std::uint64_t start_ticks = 0;
  std::shared_ptr<Recording> recording;  // mapped: it reads the current figures
  // Set for a bundle, which is shown like a process that has ended.
  std::string ending = {};
  StoredSymbols symbols = {};

  std::string title() const;  // the command line, printable
};

// The resident set size; 0 if there is no such process.
std::uint64_t resident_bytes(pid_t pid);

// The sizes in /proc/PID/smaps_rollup, in bytes; empty if it may not be read. Cost: the kernel
// walks all pages of the process.
std::vector<std::pair<std::string, std::uint64_t>> smaps_rollup(pid_t pid);

// Nothing: `word` is not a pid.
std::optional<pid_t> parse_pid(std::string_view word);

// Nothing: the process is not recorded, has ended, or may not be read by this user.
std::optional<LiveProcess> live_process(pid_t pid);

// The same, but throws Error with nothing_found. The recording's path() can be opened as a file,
// for a copy that does not change.
LiveProcess require_live_process(pid_t pid);

// Where a bundle of a recorded process goes: its own dump directory; or, if that is in a container
// that this command does not see from inside, oom_dumps here. Writing into the container would
// follow the container's links.
std::string bundle_directory(pid_t pid, const Recording& recording);

// Recorded processes of this user, youngest first.
std::vector<LiveProcess> live_processes();

// `argument`: a pid, or the name of the program's file or of the script that an interpreter runs.
// Empty: the youngest process. Throws Error if none or several match.
LiveProcess find_live_process(const std::string& argument);

}  // namespace oomrec::tools::recording

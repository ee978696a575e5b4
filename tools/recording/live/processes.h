// Recorded processes that run now. A process's session is found by its own mappings, so that nobody
// has to say in which directory it is; it is read from outside, and the process cannot notice.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/recording/reading/recording.h"
#include "tools/recording/symbolize/stored_symbols.h"

namespace oomrec::tools::recording {

struct LiveProcess {
  pid_t pid = 0;  // as it is known here, which may be in another pid namespace than its own
  std::uint64_t start_ticks = 0;
  std::shared_ptr<Recording> recording;  // mapped: its figures are those of now
  // Of a bundle, which is looked at like a process that has ended: how it ended, and its names.
  std::string ended = {};
  StoredSymbols names = {};

  std::string title() const;  // its command line, printable
};

// What is resident of it; 0 where it is no longer there.
std::uint64_t resident_bytes(pid_t pid);

// The number that `word` is; nothing where it is no process's number.
std::optional<pid_t> pid_in(std::string_view word);

// Nothing: it is not recorded, is no longer there, or may not be looked at.
std::optional<LiveProcess> live_process(pid_t pid);

// The same, but throws Error with nothing_found. Its recording's path() can be read as a file, for
// who wants a copy that does not change.
LiveProcess recorded_process(pid_t pid);

// Recorded processes of this user, the youngest first.
std::vector<LiveProcess> live_processes();

// `argument`: a number, or a program's name: that of its file, or of the script that an interpreter
// runs. Empty: the youngest. Throws Error where there is none, or more than one of that name.
LiveProcess find_live_process(const std::string& argument);

}  // namespace oomrec::tools::recording

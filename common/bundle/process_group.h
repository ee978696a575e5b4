// The other processes of a bundle: recorded ones with a common ancestor, and the largest of the
// cgroup, recorded or not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "common/facts/processes.h"

namespace oomrec::bundle {

// A recorded process, its recording and its bundle.
struct RecordedProcess {
  std::int32_t pid;
  std::int32_t parent_pid;
  std::uint64_t start_ticks;     // of the process
  std::uint64_t recorded_since;  // realtime, of the recording in `session`
  char session[96];              // file name; empty: none
  char bundle[47];               // name of its latest bundle; empty: none
  Relation relation;             // to the first of all
};

// Sets each process' relation to all[0], which becomes `self`. The kernel reuses pids: if several
// processes had the parent's pid, the parent is the one that started last before the child.
void set_relations(std::span<RecordedProcess> all) noexcept;

// What else used the cgroup's memory.
struct OtherProcess {
  std::int32_t pid;
  std::uint64_t rss_bytes;
};
inline constexpr std::size_t kMaxOtherProcesses = 10;

// Resident bytes of a process; 0: not visible.
std::uint64_t resident_bytes(std::int32_t pid) noexcept;

// Finds the processes of the cgroup `directory` with the most resident memory, largest first, among
// the first 1,000 of its list. Skips those of `group` and the calling one. `text` is a buffer to
// read into. Returns how many; −1: the cgroup cannot be read.
int find_largest_others(const char* directory, std::span<const RecordedProcess> group,
                        std::span<char> text, OtherProcess (&out)[kMaxOtherProcesses]) noexcept;

// The name of a process' executable, or the process' own name if that is hidden; empty if it is
// gone. Stored in `text`.
std::string_view program_of(std::int32_t pid, std::span<char> text) noexcept;

}  // namespace oomrec::bundle

// The largest other processes of a cgroup, recorded or not: what else used its memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "common/bundle/process_group.h"

namespace oomrec::bundle {

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

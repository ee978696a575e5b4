// The largest other processes of a cgroup, recorded or not: who else took its memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "common/bundle/process_group.h"

namespace oomrec::bundle {

struct Neighbour {
  std::int32_t pid;
  std::uint64_t rss_bytes;
};
inline constexpr std::size_t kMostNeighbours = 10;

// Resident bytes of a process; 0: it is not in sight.
std::uint64_t resident_bytes(std::int32_t pid) noexcept;

// Of the processes of the cgroup `directory` (the first 1,000 of its list) those that are resident
// most, the largest first, in `out`: but for those of the group in `known`, and the calling one.
// `text` is room to read in. How many; −1: the cgroup cannot be read.
int largest_neighbours(const char* directory, std::span<const Kin> known, std::span<char> text,
                       Neighbour (&out)[kMostNeighbours]) noexcept;

// What a process runs: the name of its executable, or where that is hidden the process' own; empty
// when it is gone. In `text`.
std::string_view program_of(std::int32_t pid, std::span<char> text) noexcept;

}  // namespace oomrec::bundle

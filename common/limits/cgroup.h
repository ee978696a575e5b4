// A process' cgroup for one controller, and its ancestors up to the root.
//
// Paths start at system::g_roots. If the path in /proc/PID/cgroup is not visible here (a container
// without its own cgroup namespace), the mounted root is what limits the process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "common/system/hook_scope.h"

namespace oomrec::limit {

inline constexpr std::size_t kCgroupPathBytes = 384;
// v1 expresses "no limit" as the largest multiple of a page: any number from this one on.
inline constexpr std::uint64_t kNoLimitOfV1 = std::uint64_t{1} << 60;

// Reads the beginning of a file, such as "/memory.stat", of a directory, such as a cgroup's.
// Returns the bytes read, NUL-terminated, or ≤ 0.
long read_cgroup_file(const char* directory, const char* file, char* buffer,
                      std::size_t capacity) noexcept;

// Reads a number from a file of a cgroup: kUnlimited for "max" and for v1's largest. False: no such
// file.
bool read_cgroup_number(const char* directory, const char* file, std::uint64_t& value) noexcept;

// What of a cgroup's memory is shared, by its memory.stat: files on tmpfs, memfds, System V shared
// memory, mapped or not. 0: none, or unknown.
std::uint64_t shared_bytes_in(std::string_view memory_stat) noexcept;
std::uint64_t read_cgroup_shared_bytes(const char* directory) noexcept;

class CgroupPath {
 public:
  // `controller`: such as "memory"; version 1 has none named "unified". `file_v1`, `file_v2`: a
  // file that exists if the cgroup is visible here. `named`: receives its name in /proc/PID/cgroup.
  // `process`: a pid; 0: the calling process.
  CgroupPath(InHook, std::string_view controller, const char* file_v1, const char* file_v2,
             char (*named)[kCgroupPathBytes] = nullptr, int process = 0) noexcept;

  bool is_found() const noexcept { return found_; }
  bool is_v1() const noexcept { return v1_; }
  bool is_root() const noexcept { return is_root_; }  // the process' own is the root

  bool read(const char* file, std::uint64_t& value) const noexcept;
  const char* directory() const noexcept { return path_; }

  // False at the root.
  bool move_to_parent() noexcept;

 private:
  char path_[kCgroupPathBytes];
  std::size_t root_bytes_ = 0;
  std::size_t bytes_ = 0;
  bool found_ = false;
  bool is_root_ = false;
  bool v1_ = false;
};

}  // namespace oomrec::limit

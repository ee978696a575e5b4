// The process' own cgroup under one controller, and the way from it up to the root.
//
// Roots are recorder/system's. Where /proc/self/cgroup names a path that is not visible here (a
// container without a namespace of its own) the mounted root is what binds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "common/system/hook_scope.h"

namespace oomrec::limit {

inline constexpr std::size_t kCgroupPathBytes = 384;

// A number in a file of a cgroup, kUnlimited for "max" and for v1's largest. False: no such file.
bool read_cgroup_number(const char* directory, const char* file, std::uint64_t& value) noexcept;

class CgroupPath {
 public:
  // `controller`: "memory", "pids"; `file_v1` and `file_v2`: a file that the cgroup must have to be
  // visible here. `named`: its name in /proc/self/cgroup goes there.
  CgroupPath(InHook, std::string_view controller, const char* file_v1, const char* file_v2,
             char (*named)[kCgroupPathBytes] = nullptr) noexcept;

  bool known() const noexcept { return known_; }
  bool is_v1() const noexcept { return v1_; }

  bool read(const char* file, std::uint64_t& value) const noexcept;
  const char* directory() const noexcept { return path_; }

  // To the parent; false at the root.
  bool climb() noexcept;

 private:
  char path_[kCgroupPathBytes];
  std::size_t root_bytes_ = 0;
  std::size_t bytes_ = 0;
  bool known_ = false;
  bool v1_ = false;
};

}  // namespace oomrec::limit

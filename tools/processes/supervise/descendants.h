// Which processes belong to this run: what /proc shows of the program's descendants while it runs.
//
// Looks at a process' parent once, when its pid first appears. A process that was born and ended
// between two samples is therefore not seen.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <deque>
#include <filesystem>
#include <map>
#include <string>
#include <unordered_set>
#include <vector>

namespace oomrec::tools::processes {

// As it was last seen.
struct Descendant {
  pid_t pid = 0;
  pid_t own_pid = 0;  // in its own pid namespace, by which its recording knows it
  std::string name;   // the kernel's: at most 15 bytes
  std::uint64_t resident_bytes = 0;
  std::uint64_t time_ns = 0;  // monotonic, of that sample
};

class Descendants {
 public:
  void started(pid_t program);

  // Passes over samples such that they take at most 1 % of a processor. `cgroup`: directory of the
  // program's.
  void sample(const std::filesystem::path& cgroup);

  // Whether this was seen as the program or a descendant. The last 10,000 to end are remembered.
  bool contains(pid_t pid) const;

  // The program's cgroup was read, and no process was seen in it but descendants, us and our
  // ancestors.
  bool are_alone_in_cgroup() const { return is_cgroup_read_ && !are_others_in_cgroup_; }

  // The pid that this one has in its own pid namespace; 0: it was not seen.
  pid_t own_pid_of(pid_t pid) const;

  // How many have ended.
  std::size_t ended_count() const { return ended_count_; }

  // Those that a sample saw since this monotonic time and that have ended.
  std::vector<Descendant> ended_since(std::uint64_t monotonic_ns) const;

 private:
  void look_at(pid_t pid, std::uint64_t now_ns);
  void leave_ended(std::uint64_t now_ns);

  std::map<pid_t, Descendant> alive_;
  std::deque<Descendant> ended_;           // oldest first
  std::map<pid_t, std::uint64_t> others_;  // alive; the time of the last sample that saw them
  std::unordered_set<pid_t> ancestors_;    // our own, and we
  std::size_t ended_count_ = 0;
  std::uint64_t next_sample_ns_ = 0;
  bool is_cgroup_read_ = false, are_others_in_cgroup_ = false;
};

}  // namespace oomrec::tools::processes

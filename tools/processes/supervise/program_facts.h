// What /proc says about the program while it runs: all that is known of one without a recording.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/limits/ceilings.h"
#include "common/options/options.h"
#include "common/session/layout.h"
#include "tools/processes/supervise/descendants.h"
#include "tools/processes/supervise/other_users.h"

namespace oomrec::tools::processes {

struct ProgramFacts {
  pid_t pid = 0;
  pid_t parent_pid = 0;
  std::optional<User> user{};
  std::uint64_t start_ticks = 0;
  std::uint64_t start_realtime_ns = 0, start_monotonic_ns = 0;
  std::string executable;  // its path, or only its name if it ran too briefly to show the path
  std::string name;        // the kernel's: at most 15 bytes
  std::string arguments;   // separated by NULs, secrets masked
  std::string working_directory;
  // Whether its environment asks the loader for the recorder; nothing: unknown.
  std::optional<bool> is_preloaded;
  limit::CgroupDirectories cgroup{};
  std::shared_ptr<session::Health> health = std::make_shared<session::Health>();
};

// Reads them once when the program has started, then again from time to time, and a last time
// before it is waited for: a zombie still has its name and its cgroup. Takes about 200 µs, and a
// millisecond for each 1,000 processes of the machine.
class ProgramSampler {
 public:
  // `path` and `words`: of the program to start, which may end before it can be sampled.
  ProgramSampler(const std::string& path, const std::vector<std::string>& words, RecordedArguments);

  void started(pid_t program);
  void sample();

  const ProgramFacts& facts() const { return facts_; }
  const Descendants& descendants() const { return descendants_; }

 private:
  void read_image(const std::string& executable);
  void read_health();
  std::string recorded_part(std::string arguments) const;

  const RecordedArguments recorded_;
  ProgramFacts facts_;
  Descendants descendants_;
  std::string name_of_image_;  // the kernel's, for `executable`
};

}  // namespace oomrec::tools::processes

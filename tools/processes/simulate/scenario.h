// A memory cgroup and a kernel log in files. A killed process and its launcher read them instead of
// the machine's.
//
// The process finds them by OOMREC_CGROUP_ROOT and OOMREC_KERNEL_LOG. The cgroup's files have the
// names of both versions. So the verdict is that of a real death, without creating a cgroup or
// using memory.
#pragma once

#include <cstddef>
#include <string>

#include "tools/base/directory.h"
#include "tools/processes/launch/process.h"

namespace oomrec::tools::processes {

struct ScenarioCgroup {
  std::size_t limit_mib = 0;  // 0: no limit
  std::size_t used_mib = 0;
};

// The directory exists as long as the object. After the construction, this process also reads the
// scenario's cgroup.
class Scenario {
 public:
  explicit Scenario(const ScenarioCgroup& cgroup);

  Settings environment() const;  // of the process in the scenario
  std::string kernel_log() const;

 private:
  TemporaryDirectory directory_;
};

// Call it in the process in the scenario: counts a kill in the cgroup, and logs that the kernel
// killed this process. `cause`: "Memory cgroup out of memory", "Out of memory".
void record_kill(const char* cause);

}  // namespace oomrec::tools::processes

// A memory cgroup and a kernel's log of the simulation's own, in files: what a killed process and
// its launcher find in place of the machine's.
//
// They are read where the real ones would be (OOMREC_CGROUP_ROOT, OOMREC_KERNEL_LOG), as v1 and as
// v2, so that the verdict is made as after a true death. No cgroup has to be made and no memory
// used.
#pragma once

#include <cstddef>
#include <filesystem>

namespace oomrec::tools::processes {

struct StagedCgroup {
  std::size_t limit_mib = 0;  // 0: it has none
  std::size_t used_mib = 0;
};

// Sets both variables for this process and for those it starts.
class Stage {
 public:
  explicit Stage(const StagedCgroup& cgroup);
  ~Stage();
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

 private:
  std::filesystem::path directory_;
};

// In the process on the stage: the kernel has counted a kill, and says in its log that it was this
// process that it killed. `whose`: "Memory cgroup out of memory", "Out of memory".
void tell_kill(const char* whose);

}  // namespace oomrec::tools::processes

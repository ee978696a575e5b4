// Writes the bundle of a program that is paused at its cgroup's limit, and then releases it.
#pragma once

#include <filesystem>
#include <thread>
#include <vector>

#include "common/options/options.h"
#include "tools/processes/launch/cgroup.h"

namespace oomrec::tools::processes {

class CgroupLimitGuard {
 public:
  // `options`: the program's; they name the directories of its recordings.
  CgroupLimitGuard(const ProgramCgroup& cgroup, const Options& options);
  ~CgroupLimitGuard();  // waits for a bundle that is being written
  CgroupLimitGuard(const CgroupLimitGuard&) = delete;
  CgroupLimitGuard& operator=(const CgroupLimitGuard&) = delete;

 private:
  void write_bundle() const;

  const ProgramCgroup& cgroup_;
  const std::vector<std::filesystem::path> dump_directories_;
  const std::filesystem::path session_directory_;
  const bool quiet_;
  std::thread thread_;
};

}  // namespace oomrec::tools::processes

// Writes the bundles of a program that stands still at its cgroup's limit, from outside, and lets
// the kernel decide then.
#pragma once

#include <filesystem>
#include <thread>
#include <vector>

#include "tools/processes/launch/cgroup.h"

namespace oomrec::tools::processes {

class BrinkWatch {
 public:
  // `dump_directories`: where the program's recordings may be (sessions_of).
  BrinkWatch(const ProgramCgroup& cgroup, std::vector<std::filesystem::path> dump_directories,
             bool quiet);
  ~BrinkWatch();  // waits for bundles that are being written
  BrinkWatch(const BrinkWatch&) = delete;
  BrinkWatch& operator=(const BrinkWatch&) = delete;

 private:
  void write_bundles() const;

  const ProgramCgroup& cgroup_;
  const std::vector<std::filesystem::path> dump_directories_;
  const bool quiet_;
  std::thread thread_;
};

}  // namespace oomrec::tools::processes

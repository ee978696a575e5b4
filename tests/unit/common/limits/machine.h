// A machine made of fixture files: its own /proc and cgroups.
#pragma once

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "common/system/files.h"
#include "tests/unit/scratch_directory.h"

namespace oomrec::tests {

// Files below a temporary root.
class Machine {
 public:
  Machine() {
    std::strcpy(system::g_roots.proc, (root_ + "/proc").c_str());
    std::strcpy(system::g_roots.cgroup, (root_ + "/cgroup").c_str());
  }
  ~Machine() { system::g_roots = {}; }
  void file(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
  }

 private:
  ScratchDirectory directory_;
  const std::string root_ = directory_.path();
};

}  // namespace oomrec::tests

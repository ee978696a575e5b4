// A fake /proc and fake cgroups, at the paths that the tools read.
#pragma once

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "common/system/files.h"
#include "tests/unit/scratch_directory.h"

namespace oomrec::tests {

class FakeSystem {
 public:
  FakeSystem() {
    set(system::g_roots.proc, "proc");
    set(system::g_roots.cgroup, "cgroup");
  }
  ~FakeSystem() { system::g_roots = {}; }
  FakeSystem(const FakeSystem&) = delete;
  FakeSystem& operator=(const FakeSystem&) = delete;

  void file(const std::filesystem::path& path, const std::string& text) const {
    std::filesystem::create_directories(path.parent_path());
    std::ofstream{path} << text;
  }
  void proc(const std::string& name, const std::string& text) const {
    file(std::filesystem::path{system::g_roots.proc} / name, text);
  }
  // A cgroup's directory, by its path below the root.
  std::filesystem::path cgroup(const std::string& path) const {
    std::filesystem::path directory{system::g_roots.cgroup};
    if (!path.empty()) directory /= path;
    std::filesystem::create_directories(directory);
    return directory;
  }
  const std::string& path() const { return directory_.path(); }

 private:
  template <std::size_t N>
  void set(char (&root)[N], const char* name) {
    const std::filesystem::path path = std::filesystem::path{directory_.path()} / name;
    std::filesystem::create_directories(path);
    std::strncpy(root, path.c_str(), N - 1);
  }
  ScratchDirectory directory_;
};

}  // namespace oomrec::tests

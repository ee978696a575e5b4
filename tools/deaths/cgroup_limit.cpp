#include "tools/deaths/cgroup_limit.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tools/base/text.h"

namespace oomrec::tools::deaths {
namespace {

namespace fs = std::filesystem;

std::uint64_t limit_in(const fs::path& directory, const char* file) {
  std::ifstream stream{directory / file};
  std::uint64_t bytes = 0;
  return stream >> bytes ? bytes : 0;  // "max" is not a number
}

}  // namespace

std::uint64_t cgroup_limit_of(pid_t pid) {
  std::uint64_t tightest = 0;
  std::ifstream lines{pid != 0 ? fmt::format("/proc/{}/cgroup", pid) : "/proc/self/cgroup"};
  for (std::string line; std::getline(lines, line);) {
    const std::vector<std::string_view> parts = split(line, ':');
    if (parts.size() < 3) continue;
    const bool is_v2 = parts[0] == "0" && parts[1].empty();
    if (!is_v2 && parts[1] != "memory") continue;
    const fs::path root = is_v2 ? "/sys/fs/cgroup" : "/sys/fs/cgroup/memory";
    fs::path directory = root / fs::path{parts[2]}.relative_path();
    for (;; directory = directory.parent_path()) {
      const std::uint64_t limit =
          limit_in(directory, is_v2 ? "memory.max" : "memory.limit_in_bytes");
      const bool no_limit = limit == 0 || limit > (std::uint64_t{1} << 60);
      if (!no_limit && (tightest == 0 || limit < tightest)) tightest = limit;
      if (directory == root || directory.native().size() <= root.native().size()) break;
    }
  }
  return tightest;
}

}  // namespace oomrec::tools::deaths

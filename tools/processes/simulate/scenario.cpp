#include "tools/processes/simulate/scenario.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>

#include "common/system/files.h"

namespace oomrec::tools::processes {
namespace {

namespace fs = std::filesystem;

constexpr const char* kCgroupRoot = "OOMREC_CGROUP_ROOT";
constexpr const char* kKernelLog = "OOMREC_KERNEL_LOG";

// What differs between the versions of the memory controller. The machine's /proc/self/cgroup
// decides which one a process reads, so both exist.
struct Version {
  const char* directory;  // below the root
  const char* limit;
  const char* usage;
  const char* no_limit;
  const char* kills;
};
constexpr Version kVersions[] = {
    {"memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "9223372036854771712",
     "memory.oom_control"},
    {"", "memory.max", "memory.current", "max", "memory.events"},
};

void write(const fs::path& file, const std::string& text) { std::ofstream{file} << text << '\n'; }

void write_cgroup(const fs::path& root, const ScenarioCgroup& cgroup) {
  const auto bytes = [](std::size_t mib) { return std::to_string(mib << 20); };
  for (const Version& version : kVersions) {
    const fs::path directory = root / version.directory;
    fs::create_directories(directory);
    write(directory / version.limit,
          cgroup.limit_mib == 0 ? version.no_limit : bytes(cgroup.limit_mib));
    write(directory / version.usage, bytes(cgroup.used_mib));
    write(directory / version.kills, "oom_kill 0");
    write(directory / "cgroup.procs", std::to_string(getpid()));
  }
}

}  // namespace

Scenario::Scenario(const ScenarioCgroup& cgroup) {
  write_cgroup(directory_.path() / "cgroup", cgroup);
  write(kernel_log(), "6,0,0,-;Linux version");
  const std::string root =
      fmt::format("{}={}", kCgroupRoot, (directory_.path() / "cgroup").string());
  const char* const entries[] = {root.c_str(), nullptr};
  system::read_roots(entries);
}

Settings Scenario::environment() const {
  return {{kCgroupRoot, (directory_.path() / "cgroup").string()}, {kKernelLog, kernel_log()}};
}

std::string Scenario::kernel_log() const { return (directory_.path() / "kernel.log").string(); }

void record_kill(const char* cause) {
  for (const Version& version : kVersions)
    write(fs::path{std::getenv(kCgroupRoot)} / version.directory / version.kills, "oom_kill 1");
  std::ofstream{std::getenv(kKernelLog), std::ios::app} << fmt::format(
      "3,1,{},-;{}: Killed process {} (oomrec) total-vm:4096kB, anon-rss:1024kB, file-rss:0kB\n",
      system::monotonic_ns() / 1000, cause, getpid());
}

}  // namespace oomrec::tools::processes

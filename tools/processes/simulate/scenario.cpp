#include "tools/processes/simulate/scenario.h"

#include <fmt/format.h>
#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>

#include "common/system/files.h"
#include "tools/base/error.h"

namespace oomrec::tools::processes {
namespace {

namespace fs = std::filesystem;

constexpr const char* kCgroupRoot = "OOMREC_CGROUP_ROOT";
constexpr const char* kKernelLog = "OOMREC_KERNEL_LOG";

// What differs between the versions of the memory controller. Which of them a process looks for
// depends on its /proc/self/cgroup, which is the machine's: both are there.
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

void write_cgroup(const fs::path& root, const StagedCgroup& cgroup) {
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

Stage::Stage(const StagedCgroup& cgroup) {
  std::string name = (fs::temp_directory_path() / "oomrec_simulate_XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) {
    throw Error{Exit::bad_input, fmt::format("{} cannot be made: {}", name, std::strerror(errno)),
                "Name a directory that can be written with TMPDIR=DIR."};
  }
  directory_ = name;
  write_cgroup(directory_ / "cgroup", cgroup);
  write(directory_ / "kernel.log", "6,0,0,-;Linux version");
  setenv(kCgroupRoot, (directory_ / "cgroup").c_str(), 1);
  setenv(kKernelLog, (directory_ / "kernel.log").c_str(), 1);
  system::read_roots(environ);
}

Stage::~Stage() {
  std::error_code nothing_to_do;
  fs::remove_all(directory_, nothing_to_do);
}

void tell_kill(const char* whose) {
  for (const Version& version : kVersions)
    write(fs::path{std::getenv(kCgroupRoot)} / version.directory / version.kills, "oom_kill 1");
  std::ofstream{std::getenv(kKernelLog), std::ios::app} << fmt::format(
      "3,1,{},-;{}: Killed process {} (oomrec) total-vm:4096kB, anon-rss:1024kB, file-rss:0kB\n",
      system::monotonic_ns() / 1000, whose, getpid());
}

}  // namespace oomrec::tools::processes

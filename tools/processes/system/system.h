// What the machine is: for `info` and `diagnose`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/base/json.h"

namespace oomrec::tools::processes {

struct SystemGpu {
  unsigned index = 0;
  std::string name, uuid;  // printable
  std::uint64_t used_bytes = 0, total_bytes = 0;
};

struct SystemFacts {
  std::string platform;      // "Linux-6.1.0-18-amd64"
  std::string architecture;  // "x86_64"
  std::string libc;          // "glibc 2.36"
  unsigned cpus = 0;         // that this process may use
  unsigned cpus_logical = 0;
  std::uint64_t memory_total = 0, memory_available = 0;  // of the cgroup, where it has a limit
  std::uint64_t swap_total = 0, swap_free = 0;
  std::string backend = "cpu";  // "cuda", "rocm"
  std::string driver_version;   // of NVIDIA; empty: none
  std::vector<SystemGpu> gpus;

  double memory_percent() const;
};
SystemFacts system_facts();

// The python3 that the commands would run; empty path: there is none.
struct PythonFacts {
  std::string path, version;
  Json packages =
      Json::object();  // {"torch": "2.1.0", "numpy": null, …}, where they were asked for
};
PythonFacts python_facts(bool with_packages);

// Keys of get_system_info() and ours.
Json system_json(const SystemFacts& system, const PythonFacts& python);
Json gpus_json(const SystemFacts& system);

}  // namespace oomrec::tools::processes

// Facts about the machine, for `info` and `diagnose`.
#pragma once

#include <string>
#include <vector>

#include "tools/base/json.h"
#include "tools/processes/gpus/nvml.h"

namespace oomrec::tools::processes {

struct SystemFacts {
  std::string platform;      // "Linux-6.1.0-18-amd64"
  std::string architecture;  // "x86_64"
  std::string libc;          // "glibc 2.36"
  unsigned cpus = 0;         // in this process's affinity mask
  unsigned cpus_logical = 0;
  std::uint64_t memory_total = 0, memory_available = 0;  // of the cgroup if its limit is lower
  std::uint64_t swap_total = 0, swap_free = 0;
  std::string backend = "cpu";  // "cuda", "rocm"
  std::string driver_version;   // NVIDIA's; empty: none
  std::vector<GpuSample> gpus;

  double memory_percent() const;
};
SystemFacts system_facts();

// The python3 that the commands run. The path is empty if none was found.
struct PythonFacts {
  std::string path, version;
  Json packages = Json::object();  // {"torch": "2.1.0", "numpy": null, …}, if requested
};
enum class PythonDetail { version, packages };
PythonFacts python_facts(PythonDetail detail);

// The keys of get_system_info(), and additional ones.
Json system_json(const SystemFacts& system, const PythonFacts& python);
Json gpus_json(const SystemFacts& system);

}  // namespace oomrec::tools::processes

#include "tools/processes/observe/system.h"

#include <fmt/format.h>
#include <gnu/libc-version.h>
#include <sched.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "tools/base/json.h"
#include "tools/base/text.h"
#include "tools/processes/gpus/nvml.h"
#include "tools/processes/launch/python.h"
#include "tools/processes/observe/machine.h"
#include "tools/processes/observe/observed.h"

namespace oomrec::tools::processes {
namespace {

// Does not import the packages: that takes seconds, and may allocate GPU memory.
constexpr const char* kVersionsScript = R"(
import json, platform
try:
    from importlib.metadata import version
except ImportError:
    version = None
found = {}
for name in sys.argv[1:]:
    try:
        found[name] = version(name)
    except Exception:
        found[name] = None
print(json.dumps({"version": platform.python_version(), "packages": found}))
)";
const std::vector<std::string> kPackages = {"oomrec", "numpy", "torch",      "tensorflow", "jax",
                                            "cupy",   "numba", "matplotlib", "plotly"};

unsigned usable_cpus(unsigned logical) {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof set, &set) == 0 ? static_cast<unsigned>(CPU_COUNT(&set))
                                                     : logical;
}

}  // namespace

double SystemFacts::memory_percent() const {
  if (memory_total == 0) return 0;
  return 100 * (1 - static_cast<double>(std::min(memory_available, memory_total)) /
                        static_cast<double>(memory_total));
}

SystemFacts system_facts() {
  SystemFacts facts;
  struct utsname name {};
  uname(&name);
  facts.platform = fmt::format("{}-{}", name.sysname, name.release);
  facts.architecture = name.machine;
  facts.libc = fmt::format("glibc {}", gnu_get_libc_version());
  facts.cpus_logical = static_cast<unsigned>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN)));
  facts.cpus = usable_cpus(facts.cpus_logical);
  const Meminfo memory = read_meminfo();
  facts.swap_total = memory.swap_total_bytes;
  facts.swap_free = memory.swap_free_bytes;
  MemorySample sample;
  observe_machine({DeviceChoice::Kind::host, 0})->sample(sample);
  facts.memory_total = sample.total_bytes.value_or(0);
  facts.memory_available =
      facts.memory_total > sample.used_bytes ? facts.memory_total - sample.used_bytes : 0;
  const Gpus gpus;
  facts.driver_version = gpus.driver_version();
  for (unsigned i = 0, count = gpus.count(); i < count; ++i)
    if (auto gpu = gpus.sample(i)) facts.gpus.push_back(*std::move(gpu));
  std::error_code error;
  facts.backend = !facts.gpus.empty()                          ? "cuda"
                  : std::filesystem::exists("/dev/kfd", error) ? "rocm"
                                                               : "cpu";
  return facts;
}

PythonFacts python_facts(PythonDetail detail) {
  PythonFacts facts;
  const std::filesystem::path python = find_python();
  if (python.empty()) return facts;
  facts.path = python.string();
  const std::vector<std::string> names =
      detail == PythonDetail::packages ? kPackages : std::vector<std::string>{};
  const Json result = parse_json(run_python(python, kVersionsScript, names, "").output);
  facts.version = printable(text_of(result, "version").value_or(""));
  if (const Json& packages = member(result, "packages"); packages.is_object())
    facts.packages = packages;
  return facts;
}

Json system_json(const SystemFacts& system, const PythonFacts& python) {
  return {{"platform", system.platform},
          {"architecture", system.architecture},
          {"libc", system.libc},
          {"cpu_count", system.cpus},
          {"cpu_count_logical", system.cpus_logical},
          {"memory_total", system.memory_total},
          {"memory_available", system.memory_available},
          {"memory_percent", system.memory_percent()},
          {"swap_total", system.swap_total},
          {"swap_free", system.swap_free},
          {"detected_backend", system.backend},
          {"cuda_available", system.backend == "cuda"},
          {"rocm_available", system.backend == "rocm"},
          {"cuda_device_count", system.gpus.size()},
          {"driver_version", text_or_null(system.driver_version)},
          {"python_path", text_or_null(printable(python.path))},
          {"python_version", text_or_null(python.version)},
          {"python_packages", python.packages.empty() ? Json(nullptr) : python.packages}};
}

Json gpus_json(const SystemFacts& system) {
  Json rows = Json::array();
  for (const GpuSample& gpu : system.gpus)
    rows.push_back({{"device_id", gpu.index},
                    {"name", text_or_null(gpu.name)},
                    {"uuid", text_or_null(printable(gpu.uuid))},
                    {"used_bytes", gpu.used_bytes},
                    {"total_bytes", gpu.total_bytes}});
  return rows;
}

}  // namespace oomrec::tools::processes

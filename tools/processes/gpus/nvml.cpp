#include "tools/processes/gpus/nvml.h"

#include <dlfcn.h>

#include <algorithm>

#include "tools/base/proc.h"
#include "tools/base/text.h"

namespace oomrec::tools::processes {
namespace {

constexpr int kSuccess = 0, kInsufficientSize = 7;
constexpr unsigned kUuidBytes = 96;     // NVML_DEVICE_UUID_V2_BUFFER_SIZE
constexpr unsigned kNameBytes = 96;     // NVML_DEVICE_NAME_V2_BUFFER_SIZE
constexpr unsigned kVersionBytes = 80;  // NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE
constexpr unsigned long long kNotAvailable = ~0ULL;

using Handle = void*;

struct Memory {  // nvmlMemory_t
  unsigned long long total, free, used;
};

struct ProcessInfo {  // nvmlProcessInfo_v2_t, of the functions …_v3
  unsigned pid;
  unsigned long long bytes;
  unsigned gpu_instance, compute_instance;
};
static_assert(sizeof(ProcessInfo) == 24);

template <class Function, class... Arguments>
int result(void* library, const char* name, Arguments... arguments) {
  constexpr int kNoSuchFunction = 13;  // NVML_ERROR_FUNCTION_NOT_FOUND
  auto* const function =
      library != nullptr ? reinterpret_cast<Function*>(dlsym(library, name)) : nullptr;
  return function != nullptr ? function(arguments...) : kNoSuchFunction;
}

template <class Function, class... Arguments>
bool call(void* library, const char* name, Arguments... arguments) {
  return result<Function>(library, name, arguments...) == kSuccess;
}

// A process that both computes and draws is in both lists, but is added once.
void add_processes(void* library, Handle device, const char* function,
                   std::vector<GpuProcess>& to) {
  using List = int(Handle, unsigned*, ProcessInfo*);
  std::vector<ProcessInfo> rows(64);
  auto count = static_cast<unsigned>(rows.size());
  int status = result<List>(library, function, device, &count, rows.data());
  if (status == kInsufficientSize) {
    rows.resize(count + 16);  // more may have started meanwhile
    count = static_cast<unsigned>(rows.size());
    status = result<List>(library, function, device, &count, rows.data());
  }
  if (status != kSuccess) return;
  rows.resize(std::min<std::size_t>(count, rows.size()));
  for (const ProcessInfo& row : rows) {
    const auto pid = static_cast<pid_t>(row.pid);
    if (std::ranges::find(to, pid, &GpuProcess::pid) != to.end()) continue;
    to.push_back({pid, name_of_process(pid), std::nullopt});
    if (row.bytes != kNotAvailable) to.back().bytes = row.bytes;
  }
}

}  // namespace

Gpus::Gpus() {
  void* const library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return;
  if (call<int()>(library, "nvmlInit_v2"))
    library_ = {library, [](void* nvml) {
                  call<int()>(nvml, "nvmlShutdown");
                  dlclose(nvml);
                }};
  else
    dlclose(library);
}

unsigned Gpus::count() const {
  unsigned count = 0;
  return call<int(unsigned*)>(library_.get(), "nvmlDeviceGetCount_v2", &count) ? count : 0;
}

std::string Gpus::driver_version() const {
  char version[kVersionBytes] = {};
  call<int(char*, unsigned)>(library_.get(), "nvmlSystemGetDriverVersion", version, kVersionBytes);
  return printable(version);
}

std::optional<GpuSample> Gpus::sample(unsigned index) const {
  void* const nvml = library_.get();
  Handle device = nullptr;
  char uuid[kUuidBytes] = {}, name[kNameBytes] = {};
  Memory memory{};
  if (!call<int(unsigned, Handle*)>(nvml, "nvmlDeviceGetHandleByIndex_v2", index, &device) ||
      !call<int(Handle, char*, unsigned)>(nvml, "nvmlDeviceGetUUID", device, uuid, kUuidBytes) ||
      !call<int(Handle, Memory*)>(nvml, "nvmlDeviceGetMemoryInfo", device, &memory))
    return std::nullopt;
  call<int(Handle, char*, unsigned)>(nvml, "nvmlDeviceGetName", device, name, kNameBytes);
  GpuSample sample{index, uuid, printable(name), memory.used, memory.total, {}};
  for (const char* function :
       {"nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetGraphicsRunningProcesses_v3"})
    add_processes(nvml, device, function, sample.processes);
  std::ranges::stable_sort(sample.processes, std::ranges::greater{},
                           [](const GpuProcess& process) { return process.bytes.value_or(0); });
  return sample;
}

std::vector<GpuSample> sample_gpus() {
  const Gpus gpus;
  std::vector<GpuSample> samples;
  for (unsigned i = 0, count = gpus.count(); i < count; ++i)
    if (auto sample = gpus.sample(i)) samples.push_back(*std::move(sample));
  return samples;
}

}  // namespace oomrec::tools::processes

#include "tools/processes/gpus/nvml.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <fstream>

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

}  // namespace

// The library while it is open. A call of a function that it lacks fails.
class Gpus::Nvml {
 public:
  Nvml() : library_(dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL)) {
    is_open_ = library_ != nullptr && call<int()>("nvmlInit_v2");
  }
  ~Nvml() {
    if (is_open_) call<int()>("nvmlShutdown");
    if (library_ != nullptr) dlclose(library_);
  }
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  unsigned count() const {
    unsigned count = 0;
    return is_open_ && call<int(unsigned*)>("nvmlDeviceGetCount_v2", &count) ? count : 0;
  }

  std::string driver_version() const {
    char version[kVersionBytes] = {};
    if (is_open_) call<int(char*, unsigned)>("nvmlSystemGetDriverVersion", version, kVersionBytes);
    return version;
  }

  std::optional<GpuSample> sample(unsigned index) const {
    Handle device = nullptr;
    char uuid[kUuidBytes] = {};
    Memory memory{};
    if (!call<int(unsigned, Handle*)>("nvmlDeviceGetHandleByIndex_v2", index, &device) ||
        !call<int(Handle, char*, unsigned)>("nvmlDeviceGetUUID", device, uuid, kUuidBytes) ||
        !call<int(Handle, Memory*)>("nvmlDeviceGetMemoryInfo", device, &memory)) {
      return std::nullopt;
    }
    char name[kNameBytes] = {};
    call<int(Handle, char*, unsigned)>("nvmlDeviceGetName", device, name, kNameBytes);
    GpuSample sample{uuid, name, memory.used, memory.total, {}};
    for (const char* function :
         {"nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetGraphicsRunningProcesses_v3"})
      add_processes(device, function, sample.processes);
    std::stable_sort(sample.processes.begin(), sample.processes.end(),
                     [](const GpuProcess& a, const GpuProcess& b) {
                       return a.bytes.value_or(0) > b.bytes.value_or(0);
                     });
    return sample;
  }

 private:
  template <class Function, class... Arguments>
  int result(const char* name, Arguments... arguments) const {
    constexpr int kNoSuchFunction = 13;  // NVML_ERROR_FUNCTION_NOT_FOUND
    auto* const function = reinterpret_cast<Function*>(dlsym(library_, name));
    return function != nullptr ? function(arguments...) : kNoSuchFunction;
  }
  template <class Function, class... Arguments>
  bool call(const char* name, Arguments... arguments) const {
    return result<Function>(name, arguments...) == kSuccess;
  }

  // A process that both computes and draws is in both lists, but is added once.
  void add_processes(Handle device, const char* function, std::vector<GpuProcess>& to) const {
    using List = int(Handle, unsigned*, ProcessInfo*);
    std::vector<ProcessInfo> rows(64);
    auto count = static_cast<unsigned>(rows.size());
    int status = result<List>(function, device, &count, rows.data());
    if (status == kInsufficientSize) {
      rows.resize(count + 16);  // more may have started meanwhile
      count = static_cast<unsigned>(rows.size());
      status = result<List>(function, device, &count, rows.data());
    }
    if (status != kSuccess) return;
    rows.resize(std::min<std::size_t>(count, rows.size()));
    for (const ProcessInfo& row : rows) {
      const auto pid = static_cast<pid_t>(row.pid);
      const bool is_listed = std::any_of(
          to.begin(), to.end(), [&](const GpuProcess& process) { return process.pid == pid; });
      if (!is_listed) to.push_back({pid, program_of(pid), bytes_of(row)});
    }
  }

  static std::optional<std::uint64_t> bytes_of(const ProcessInfo& row) {
    return row.bytes != kNotAvailable ? std::optional<std::uint64_t>{row.bytes} : std::nullopt;
  }

  static std::string program_of(pid_t pid) {
    std::string name;
    std::ifstream comm{fmt::format("/proc/{}/comm", pid)};
    std::getline(comm, name);
    return name;
  }

  void* library_;
  bool is_open_ = false;
};

Gpus::Gpus() : nvml_(std::make_unique<Nvml>()) {}
Gpus::~Gpus() = default;
Gpus::Gpus(Gpus&&) noexcept = default;

unsigned Gpus::count() const { return nvml_->count(); }
std::optional<GpuSample> Gpus::sample(unsigned index) const { return nvml_->sample(index); }
std::string Gpus::driver_version() const { return nvml_->driver_version(); }

std::vector<GpuSample> sample_gpus() {
  const Gpus gpus;
  std::vector<GpuSample> samples;
  for (unsigned i = 0, count = gpus.count(); i < count; ++i)
    if (auto sample = gpus.sample(i)) samples.push_back(*std::move(sample));
  return samples;
}

}  // namespace oomrec::tools::processes

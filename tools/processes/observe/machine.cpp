// The machine's memory: RAM, or the cgroup's limit if that is lower; or a GPU's, as NVML reports
// it.

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>
#include <string_view>

#include "common/limits/ceilings.h"
#include "common/session/layout.h"
#include "common/system/files.h"
#include "tools/base/error.h"
#include "tools/base/text.h"
#include "tools/deaths/counters.h"
#include "tools/processes/gpus/nvml.h"
#include "tools/processes/observe/machine.h"
#include "tools/processes/observe/observed.h"

namespace oomrec::tools::processes {
namespace {

class MachineHost : public Observed {
 public:
  bool sample(MemorySample& sample) override {
    limit::Ceilings ceilings{};
    limit::read_cgroup(OutsideHooks::in_hook(), ceilings);
    const Meminfo memory = read_meminfo();
    const bool limited =
        ceilings.cgroup_limit_bytes != 0 && ceilings.cgroup_limit_bytes < memory.total_bytes;
    sample.realtime_ns = system::realtime_ns();
    sample.used_bytes = limited ? ceilings.cgroup_used_bytes : memory.used_bytes();
    sample.total_bytes = limited ? ceilings.cgroup_limit_bytes : memory.total_bytes;
    sample.allocated_bytes = sample.reserved_bytes = sample.used_bytes;
    sample.bound = {limited ? "cgroup" : "RAM", sample.used_bytes, *sample.total_bytes};
    return true;
  }
  std::string title() const override { return "memory of the machine"; }
  int device_id() const override { return -1; }
};

class MachineGpu : public Observed {
 public:
  MachineGpu(Gpus gpus, unsigned index, std::string name)
      : gpus_(std::move(gpus)), index_(index), name_(std::move(name)) {}

  bool sample(MemorySample& sample) override {
    const auto gpu = gpus_.sample(index_);
    if (!gpu) return false;
    sample.realtime_ns = system::realtime_ns();
    sample.allocated_bytes = sample.reserved_bytes = sample.used_bytes = gpu->used_bytes;
    sample.total_bytes = gpu->total_bytes;
    sample.bound = {"device", gpu->used_bytes, gpu->total_bytes};
    return true;
  }
  std::string title() const override { return fmt::format("cuda:{} ({})", index_, name_); }
  int device_id() const override { return static_cast<int>(index_); }
  std::string ending() const override { return "is gone: NVML no longer reports it"; }

 private:
  const Gpus gpus_;
  const unsigned index_;
  const std::string name_;
};

}  // namespace

std::unique_ptr<Observed> observe_machine(const DeviceChoice& device) {
  if (device.kind == DeviceChoice::Kind::host) return std::make_unique<MachineHost>();
  Gpus gpus;
  const unsigned count = gpus.count();
  const auto index = static_cast<unsigned>(device.ordinal);
  if (auto gpu = index < count ? gpus.sample(index) : std::nullopt)
    return std::make_unique<MachineGpu>(std::move(gpus), index, gpu->name);
  if (device.kind == DeviceChoice::Kind::any) return std::make_unique<MachineHost>();
  throw Error{Exit::bad_input, fmt::format("there is no device {}", device.ordinal),
              count == 0 ? "NVML reports no GPU here: give --device cpu."
                         : fmt::format("There are 0 to {}; --device cpu is the host.", count - 1)};
}

Meminfo read_meminfo() {
  Meminfo memory;
  const struct {
    std::string_view name;
    std::uint64_t& bytes;
  } rows[] = {{"MemTotal:", memory.total_bytes},
              {"MemAvailable:", memory.available_bytes},
              {"SwapTotal:", memory.swap_total_bytes},
              {"SwapFree:", memory.swap_free_bytes}};
  std::ifstream file{fmt::format("{}/meminfo", system::g_roots.proc)};
  std::string name;
  for (std::uint64_t kib = 0; file >> name >> kib;) {
    for (const auto& row : rows)
      if (row.name == name) row.bytes = kib << 10;
    file.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return memory;
}

std::uint64_t host_total_bytes(pid_t pid) {
  const std::uint64_t ram = read_meminfo().total_bytes;
  const std::uint64_t limit = deaths::cgroup_limit_of(pid);
  return limit != 0 ? std::min(ram, limit) : ram;
}

}  // namespace oomrec::tools::processes

// The machine's own memory: RAM (or what the cgroup leaves of it), or a GPU as NVML tells it.
#include <fmt/format.h>

#include "common/limits/ceilings.h"
#include "common/session/layout.h"
#include "common/system/files.h"
#include "tools/base/error.h"
#include "tools/base/text.h"
#include "tools/processes/gpus/nvml.h"
#include "tools/processes/observe/meminfo.h"
#include "tools/processes/observe/observed.h"

namespace oomrec::tools::processes {
namespace {

class MachineHost : public Observed {
 public:
  bool look(Look& look) override {
    limit::Ceilings ceilings{};
    limit::read_cgroup(OutsideHooks::in_hook(), ceilings);
    const Meminfo memory = read_meminfo();
    const bool limited =
        ceilings.cgroup_limit_bytes != 0 && ceilings.cgroup_limit_bytes < memory.total_bytes;
    look.realtime_ns = system::realtime_ns();
    look.used_bytes = limited ? ceilings.cgroup_used_bytes : memory.used_bytes();
    look.total_bytes = limited ? ceilings.cgroup_limit_bytes : memory.total_bytes;
    look.allocated_bytes = look.reserved_bytes = look.used_bytes;
    look.bound = {limited ? "cgroup" : "RAM", look.used_bytes, *look.total_bytes};
    return true;
  }
  std::string title() const override { return "memory of the machine"; }
  int device_id() const override { return -1; }
};

class MachineGpu : public Observed {
 public:
  MachineGpu(Gpus gpus, unsigned index, std::string name)
      : gpus_(std::move(gpus)), index_(index), name_(std::move(name)) {}

  bool look(Look& look) override {
    const auto seen = gpus_.look(index_);
    if (!seen) return false;
    look.realtime_ns = system::realtime_ns();
    look.allocated_bytes = look.reserved_bytes = look.used_bytes = seen->used_bytes;
    look.total_bytes = seen->total_bytes;
    look.bound = {"device", seen->used_bytes, seen->total_bytes};
    return true;
  }
  std::string title() const override {
    return fmt::format("cuda:{} ({})", index_, printable(name_));
  }
  int device_id() const override { return static_cast<int>(index_); }
  std::string ending() const override { return "is gone: NVML tells nothing of it any more"; }

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
  if (auto seen = index < count ? gpus.look(index) : std::nullopt)
    return std::make_unique<MachineGpu>(std::move(gpus), index, seen->name);
  if (device.kind == DeviceChoice::Kind::any) return std::make_unique<MachineHost>();
  throw Error{Exit::bad_input, fmt::format("there is no device {}", device.ordinal),
              count == 0 ? "NVML tells of no GPU here: give --device cpu."
                         : fmt::format("There are 0 to {}; --device cpu is the host.", count - 1)};
}

}  // namespace oomrec::tools::processes

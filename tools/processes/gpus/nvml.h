// Which processes use the machine's NVIDIA GPUs, as NVML reports it.
//
// NVML is opened by name and closed after the last sample. It keeps descriptors of the devices
// open, so only the command calls it, never the recorded program.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace oomrec::tools::processes {

struct GpuProcess {
  pid_t pid = 0;                       // in the machine's pid namespace, even from a container
  std::string program;                 // empty: it has ended, or is in another pid namespace
  std::optional<std::uint64_t> bytes;  // nullopt: NVML does not report it
};

struct GpuSample {
  unsigned index = 0;  // NVML's
  std::string uuid;    // as in DeviceFigures
  std::string name;    // "NVIDIA H200"; printable; empty: unknown
  std::uint64_t used_bytes = 0, total_bytes = 0;
  std::vector<GpuProcess> processes;  // the largest first
};

// NVML while it is open, for repeated samples.
class Gpus {
 public:
  Gpus();

  unsigned count() const;  // 0 without NVML
  std::optional<GpuSample> sample(unsigned index) const;
  std::string driver_version() const;  // "535.104.05"; printable; empty: unknown

 private:
  std::shared_ptr<void> library_;  // null: there is none that works
};

// Empty without NVML or devices.
std::vector<GpuSample> sample_gpus();

}  // namespace oomrec::tools::processes

// Who uses the machine's NVIDIA GPUs, as NVML tells it: seen from outside of every process.
//
// NVML is opened by name, and closed again after the look or looks: it holds descriptors of the
// devices, so the command alone asks it, never the recorded program.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace oomrec::tools::processes {

struct GpuProcess {
  pid_t pid = 0;                       // as the machine counts, also from a container
  std::string program;                 // empty: gone, or not to be seen from here
  std::optional<std::uint64_t> bytes;  // nothing: NVML may not say
};

struct GpuLook {
  std::string uuid;  // as of DeviceFigures
  std::string name;  // "NVIDIA H200"; empty: not known
  std::uint64_t used_bytes = 0, total_bytes = 0;
  std::vector<GpuProcess> processes;  // who holds most first
};

// NVML while it is open, for who looks again and again.
class Gpus {
 public:
  Gpus();
  ~Gpus();
  Gpus(Gpus&&) noexcept;
  Gpus& operator=(Gpus&&) = delete;

  unsigned count() const;  // 0: there is no NVML, or no device
  std::optional<GpuLook> look(unsigned index) const;
  std::string driver_version() const;  // "535.104.05"; empty: not known

 private:
  class Nvml;
  std::unique_ptr<Nvml> nvml_;
};

// Empty where there is no NVML or no device.
std::vector<GpuLook> look_at_gpus();

}  // namespace oomrec::tools::processes

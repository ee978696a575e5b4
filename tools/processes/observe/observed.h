// Samples memory from outside: of the machine or of a process, on the host or on a GPU.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "tools/processes/observe/device_choice.h"
#include "tools/recording/live/processes.h"

namespace oomrec::tools::processes {

// The nearest limit.
struct Bound {
  std::string name;  // "RAM", "cgroup", "soft", "rlimit_as", "device", "device_limit"
  std::uint64_t used_bytes = 0, limit_bytes = 0;

  double percent() const {
    return limit_bytes != 0
               ? 100 * static_cast<double>(used_bytes) / static_cast<double>(limit_bytes)
               : 0;
  }
};

// On the host, `allocated` is live in the recording and `used` is resident; without a recording
// both are resident. On a GPU, `allocated` and `reserved` are the process's own; `used` is of all
// processes.
struct MemorySample {
  std::uint64_t realtime_ns = 0;
  std::uint64_t allocated_bytes = 0, reserved_bytes = 0, used_bytes = 0;
  std::optional<std::uint64_t> inactive_bytes;  // reserved and unused, as PyTorch counts them
  std::optional<std::uint64_t> total_bytes;
  Bound bound;
};

class Observed {
 public:
  virtual ~Observed() = default;

  // False: the process has ended; `sample` is unchanged.
  virtual bool sample(MemorySample& sample) = 0;

  virtual std::string title() const = 0;    // "python3 train.py (4711) on cuda:0"
  virtual int device_id() const = 0;        // −1: the host
  virtual pid_t pid() const { return -1; }  // −1: the machine
  virtual std::string ending() const { return "has ended"; }

  // null if the process is not recorded. An exec replaces it.
  virtual const recording::Recording* recording() const { return nullptr; }

  // Counted by the recording, even after the last sample.
  virtual std::uint64_t failures() const { return 0; }
  virtual std::uint64_t recorded_peak() const { return 0; }  // bytes; 0 for GPUs
};

// Throws Error if there is no such device.
std::unique_ptr<Observed> observe_machine(const DeviceChoice& device);

// Both throw Error if the process does not use the device.
std::unique_ptr<Observed> observe_recorded(recording::LiveProcess process,
                                           const DeviceChoice& device);
std::unique_ptr<Observed> observe_unrecorded(pid_t pid, const DeviceChoice& device);

// By pid or, if recorded, by program. Throws Error with nothing_found if there is no such process.
std::unique_ptr<Observed> observe_process(const std::string& word, const DeviceChoice& device);

// The host memory that a process can use: RAM, or the limit of its cgroup if that is lower. `pid`
// 0: this process.
std::uint64_t host_total_bytes(pid_t pid = 0);

}  // namespace oomrec::tools::processes

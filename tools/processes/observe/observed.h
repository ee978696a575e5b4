// Memory that is looked at again and again, from outside: of the machine or of a process, on the
// host or on a GPU.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "tools/processes/observe/device_choice.h"
#include "tools/recording/live/processes.h"

namespace oomrec::tools::processes {

// The nearest of what bounds it.
struct Bound {
  std::string name;  // "RAM", "cgroup", "soft", "rlimit_as", "device", "device_limit"
  std::uint64_t used_bytes = 0, limit_bytes = 0;

  double percent() const {
    return limit_bytes != 0
               ? 100 * static_cast<double>(used_bytes) / static_cast<double>(limit_bytes)
               : 0;
  }
};

// One look. Of the host: allocated is what the recording counts as live, used what is resident;
// without a recording both are resident memory. Of a GPU: allocated and reserved are the process's
// own, used is what all processes have on it.
struct Look {
  std::uint64_t realtime_ns = 0;
  std::uint64_t allocated_bytes = 0, reserved_bytes = 0, used_bytes = 0;
  std::optional<std::uint64_t> inactive_bytes;  // reserved and not used, by PyTorch's own figures
  std::optional<std::uint64_t> total_bytes;
  Bound bound;
};

class Observed {
 public:
  virtual ~Observed() = default;

  // False: the process has ended, and `look` is left as it is.
  virtual bool look(Look& look) = 0;

  virtual std::string title() const = 0;    // "python3 train.py (4711) on cuda:0"
  virtual int device_id() const = 0;        // −1: the host
  virtual pid_t pid() const { return -1; }  // −1: the machine
  virtual std::string ending() const { return "has ended"; }

  // Of a recorded process; the session may be another one after an exec.
  virtual const recording::Recording* recording() const { return nullptr; }

  // What the recording has counted so far, or at last: also what came after the last look.
  virtual std::uint64_t failures() const { return 0; }       // refusals
  virtual std::uint64_t recorded_peak() const { return 0; }  // bytes; of GPUs it knows none
};

// The machine. Throws Error where there is no such device.
std::unique_ptr<Observed> observe_machine(const DeviceChoice& device);

// A process, recorded or not. Throws Error where it is not on the device.
std::unique_ptr<Observed> observe_recorded(recording::LiveProcess process,
                                           const DeviceChoice& device);
std::unique_ptr<Observed> observe_unrecorded(pid_t pid, const DeviceChoice& device);

// By number or name; throws Error with nothing_found where there is none. A number may be that of a
// process that is not recorded.
std::unique_ptr<Observed> observe_process(const std::string& word, const DeviceChoice& device);

// What the host's memory comes to for a process: RAM, or less where its cgroup has a limit. 0: this
// process.
std::uint64_t host_total_bytes(pid_t pid = 0);

}  // namespace oomrec::tools::processes

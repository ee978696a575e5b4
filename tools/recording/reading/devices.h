// The GPUs of a recording: identity, the memory that the process holds on each, and the figures
// that driver and PyTorch reported.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/recording/reading/recording.h"

namespace oomrec::tools::recording {

struct DeviceFigures {
  std::uint32_t entry = 0;  // in `devices`
  std::string label;        // "cuda:0": the driver's number for it in this process
  session::Vendor vendor = session::Vendor::cuda;
  int ordinal = 0;
  std::string uuid;  // "GPU-8-4-4-4-12" as NVML prints it; empty: unknown
  std::string name;

  std::uint64_t limit_bytes = 0;  // --limit-gpu; 0: none
  std::uint64_t held_bytes = 0;   // what the limit counts: blocks, and memory reserved by pools
  std::uint64_t block_bytes = 0, pool_used_bytes = 0, pool_reserved_bytes = 0;
  std::uint64_t managed_bytes = 0;  // not in the above: it migrates between host and device
  std::uint64_t peak_bytes = 0;     // of held_bytes

  // The driver's last answer, adjusted by what this process has done since. It counts all processes
  // on the device.
  struct DriverSample {
    std::uint64_t age_ms = 0;  // at the end of the recording
    std::uint64_t free_bytes = 0, total_bytes = 0;
  };
  std::optional<DriverSample> driver_sample;  // nothing: the driver was never polled

  // PyTorch's last report. Allocated bytes are part of the reserved ones, and those of held_bytes.
  struct Torch {
    std::uint64_t allocated_bytes = 0, reserved_bytes = 0;
    // Largest contiguous free piece of the reserved memory, at the failure; nothing: unknown.
    std::optional<std::uint64_t> largest_free_bytes;

    double fragmentation_ratio() const;  // share of the reserved bytes that is not allocated
  };
  std::optional<Torch> torch;

  // Bytes that the driver counts and this recording does not; 0 without a driver sample.
  std::uint64_t others_bytes() const;
};

// In the order in which the program first used them. `failure`: entry in `failures`; 0: none.
std::vector<DeviceFigures> devices_of(const Recording&, std::uint32_t failure);

// "cuda:0"; empty if `entry` is 0 or does not exist.
std::string device_label(const Recording&, std::uint32_t entry);

// One row for each holder with memory on this device; a holder may have memory on several. Live
// bytes and blocks only: the recorder keeps no peak for each device.
std::vector<HolderFigures> holders_on(const Recording&, std::uint32_t entry);

}  // namespace oomrec::tools::recording

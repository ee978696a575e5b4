// The GPUs of a recording: which they are, what the process holds on each, what their drivers told.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/recording/reading/recording.h"

namespace oomrec::tools::recording {

struct DeviceFigures {
  std::uint32_t entry = 0;  // in `devices`
  std::string label;        // "cuda:0", by the number its driver gives it in this process
  session::Vendor vendor = session::Vendor::cuda;
  int ordinal = 0;
  std::string uuid;  // "GPU-8-4-4-4-12" as NVML prints it; empty: not known
  std::string name;

  std::uint64_t limit_bytes = 0;  // --limit-gpu; 0: none
  std::uint64_t held_bytes = 0;   // what the limit counts: blocks, and what pools hold
  std::uint64_t block_bytes = 0, pool_used_bytes = 0, pool_reserved_bytes = 0;
  std::uint64_t managed_bytes = 0;  // in none of those: it moves between host and device
  std::uint64_t peak_bytes = 0;     // of held_bytes

  // As the driver told last, and what this process has done since. It counts every process on the
  // device.
  struct Look {
    std::uint64_t age_ms = 0;  // when the recording ends
    std::uint64_t free_bytes = 0, total_bytes = 0;
  };
  std::optional<Look> look;

  // As PyTorch's reporter told last. Allocated lies inside reserved, and both inside held_bytes.
  struct Torch {
    std::uint64_t allocated_bytes = 0, reserved_bytes = 0;
    // In one piece of what is reserved and not allocated, at the refusal; nothing: not known.
    std::optional<std::uint64_t> largest_free_bytes;

    double fragmentation_ratio() const;  // share of what is reserved and not allocated
  };
  std::optional<Torch> torch;

  // What the driver counts and the recording does not; 0 before the first look.
  std::uint64_t others_bytes() const;
};

// In the order in which the program met them. `failure`: entry in `failures`, 0: none.
std::vector<DeviceFigures> devices_of(const Recording&, std::uint32_t failure);

// "cuda:0"; empty for entry 0 and one that is not there.
std::string device_label(const Recording&, std::uint32_t entry);

// What stacks hold on one device, each as a holder of its own; a holder of a space may hold on
// several. Bytes and blocks that are live now: no peak is kept for a device.
std::vector<HolderFigures> holders_on(const Recording&, std::uint32_t entry);

}  // namespace oomrec::tools::recording

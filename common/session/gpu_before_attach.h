// What a process has of GPUs when `oomrec attach` comes. The command finds it from outside and
// writes it here, in the process's memory, as the symbol oomrec_gpu_before_attach; the library then
// uses it.
#pragma once

#include <cstddef>

#include "common/session/types.h"

namespace oomrec::session {

struct GpuBeforeAttach {
  static constexpr std::size_t kMostDevices = 16, kMostWords = 4032;

  // The device memory that the process uses, with its context, as NVML says.
  struct Device {
    u8 uuid[16];
    u64 bytes;
  };
  u64 device_count;
  Device devices[kMostDevices];
  // Addresses of words of the process's variables that have the address of a driver's function.
  u64 word_count;
  u64 words[kMostWords];
};

}  // namespace oomrec::session

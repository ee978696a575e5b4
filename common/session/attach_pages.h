// What `oomrec attach` and the library say to each other in the memory of the process, as symbols
// of the library.
#pragma once

#include <cstddef>

#include "common/session/types.h"

namespace oomrec::session {

// oomrec_gpu_before_attach: what the process has of GPUs when the command comes, which finds it
// from outside and writes it here; the library then uses it.
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

// oomrec_object_counts: the answer to `oomrec attach --objects`, which the library writes and the
// command reads from outside.
inline constexpr std::size_t kObjectCountsBytes = 24 * 1024;  // of the text behind the page's head

// `bytes`: of the text, once the state is `done`.
struct ObjectCountsPage {
  enum State : u32 { none, waiting, counting, done, failed };
  u32 state;
  u32 bytes;
};

}  // namespace oomrec::session

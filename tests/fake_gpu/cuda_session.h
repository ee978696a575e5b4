// Shared by the fake driver's tests: a device with a current context, and its used bytes.
#pragma once

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdlib>

#include "tests/fake_gpu/test_declarations.h"

namespace fake_cuda_test {

using namespace oomrec::shim::cuda;

inline constexpr std::size_t kMiB = 1 << 20;
inline constexpr int kInvalidValue = 1;
inline constexpr int kOutOfMemory = 2;
inline constexpr int kNotInitialized = 3;
inline constexpr int kInvalidContext = 201;
inline constexpr int kNotSupported = 801;

inline std::size_t used() {
  std::size_t free = 0;
  std::size_t total = 0;
  REQUIRE(cuMemGetInfo_v2(&free, &total) == 0);
  return total - free;
}

// Makes an empty context of the device current. The destructor destroys it with its memory.
struct Session {
  explicit Session(int device = 0) : device_(device) {
    setenv("FAKE_GPU_BYTES", "256M", 1);  // read by the first call that needs it
    REQUIRE(cuInit(0) == 0);
    CUcontext context = nullptr;
    REQUIRE(cuDevicePrimaryCtxRetain(&context, device) == 0);
    REQUIRE(cuCtxSetCurrent(context) == 0);
    REQUIRE(used() == 0);
  }
  ~Session() {
    fake_gpu_reset();
    cuDevicePrimaryCtxReset_v2(device_);
    cuCtxSetCurrent(nullptr);
  }
  const int device_;
};

}  // namespace fake_cuda_test

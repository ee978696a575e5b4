// Shared by the tests of CUDA's pitfalls: the driver by dlsym, both devices' primary contexts.
#pragma once

#include "tests/gpu/cuda_trials.h"

namespace oomrec::gpu_trial {

inline constexpr int kInvalidValue = 1, kNotInitialized = 3, kNoContext = 201;

inline unsigned long (*g_calls)(const char* name) = nullptr;

inline void reach() {
  static const Reached reached;
  look_up(reached.library, "fake_gpu_calls", g_calls);
}

// The primary contexts of both devices. The second's is current.
struct Primaries {
  CUcontext of[2] = {};
  Primaries() {
    reach();
    need(other.cuInit(0));
    for (const int ordinal : {0, 1}) need(f.cuDevicePrimaryCtxRetain(&of[ordinal], ordinal));
    use(kOrdinal);
  }
  void use(int ordinal) { need(other.cuCtxSetCurrent(of[ordinal])); }
};

// The same for a test that leaves no memory behind.
struct Contexts : Primaries {
  Contexts() { own_session::new_events(); }
  ~Contexts() {
    for (const int ordinal : {0, 1}) f.cuDevicePrimaryCtxRelease_v2(ordinal);
    other.cuCtxSetCurrent(nullptr);
    for (const Space space : {Space::cuda, Space::cuda_host, Space::cuda_va}) {
      CHECK(own_session::live_bytes(space) == 0);
      CHECK(own_session::live_count(space) == 0);
      CHECK(own_session::held(space).bytes == 0);
    }
  }
};

inline std::int64_t counted(int ordinal) {
  return static_cast<std::int64_t>(own_session::figures(Vendor::cuda, ordinal).counted);
}
inline std::int64_t live(Space space = kMain) { return own_session::live_bytes(space); }

}  // namespace oomrec::gpu_trial

// Shared by the tests of CUDA's pitfalls: the driver by dlsym, both devices' primary contexts.
#pragma once

#include "tests/gpu/cuda_trials.h"

namespace oomrec::gpu_trial {

inline constexpr std::int64_t kOne = kBytes;
inline constexpr int kInvalidValue = 1, kNotInitialized = 3, kNoContext = 201;

inline unsigned long (*g_calls)(const char* name) = nullptr;

struct Reached {
  Reached() {
    void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    REQUIRE(library != nullptr);
#define X(name, ...) look_up(library, #name, f.name);
    OOMREC_CUDA_FUNCTIONS(X)
#undef X
#define X(name, parameters) look_up(library, #name, other.name);
    CLIENT_OTHER_FUNCTIONS(X)
#undef X
    look_up(library, "fake_gpu_fail", g_fail);
    look_up(library, "fake_gpu_calls", g_calls);
  }
};

// The primary contexts of both devices. The second's is current.
struct Contexts {
  CUcontext of[2] = {};
  Contexts() {
    static const Reached reached;
    need(other.cuInit(0));
    for (const int ordinal : {0, 1}) need(f.cuDevicePrimaryCtxRetain(&of[ordinal], ordinal));
    use(kOrdinal);
    own_session::new_events();
  }
  ~Contexts() {
    for (const int ordinal : {0, 1}) f.cuDevicePrimaryCtxRelease_v2(ordinal);
    other.cuCtxSetCurrent(nullptr);
    for (const Space space : {Space::cuda, Space::cuda_host, Space::cuda_va}) {
      CHECK(own_session::live_bytes(space) == 0);
      CHECK(own_session::live_count(space) == 0);
      CHECK(own_session::held(space).bytes == 0);
    }
  }
  void use(int ordinal) { need(other.cuCtxSetCurrent(of[ordinal])); }
};

inline std::int64_t counted(int ordinal) {
  return static_cast<std::int64_t>(own_session::figures(Vendor::cuda, ordinal).counted);
}
inline std::int64_t live(Space space = kMain) { return own_session::live_bytes(space); }

}  // namespace oomrec::gpu_trial

// Shared by the trials of HIP's functions.
#pragma once

#include "tests/gpu/hip_client.h"
#include "tests/gpu/trial.h"

namespace oomrec::gpu_trial {

inline constexpr Space kMain = Space::hip, kHost = Space::hip_host, kVa = Space::hip_va;
inline constexpr hipMemLocation kThere{hipMemLocationTypeDevice, kOrdinal};
inline constexpr hipMemAllocationProp kHandleProps{1, 0, kThere, nullptr, {}};
inline constexpr hipMemPoolProps kPoolProps{1, 0, kThere, nullptr, {}};

inline void* new_block() {
  void* block = nullptr;
  need(f.hipMalloc(&block, kBytes));
  return block;
}

inline hipMemPool_t new_pool() {
  hipMemPool_t pool = nullptr;
  need(f.hipMemPoolCreate(&pool, &kPoolProps));
  return pool;
}

inline hipMemGenericAllocationHandle_t new_handle() {
  hipMemGenericAllocationHandle_t handle = nullptr;
  need(f.hipMemCreate(&handle, kBytes, &kHandleProps, 0));
  return handle;
}

inline void* as_pointer(int descriptor) {
  return reinterpret_cast<void*>(std::intptr_t{descriptor});
}

}  // namespace oomrec::gpu_trial

// Shared by the trials of HIP's functions.
#pragma once

#include "tests/fake_gpu/both_types.h"
#include "tests/gpu/hip_client.h"
#include "tests/gpu/own_session.h"

#define DRIVER(name) hip##name

namespace oomrec::gpu_trial {

inline constexpr Space kMain = Space::hip, kHost = Space::hip_host, kVa = Space::hip_va;

#define X(name, other, ours) using name = ours;
BOTH_TYPES(X)
#undef X

inline constexpr auto kOnDevice = hipMemLocationTypeDevice;
inline constexpr int kAllocationNode = hipGraphNodeTypeMemAlloc;

}  // namespace oomrec::gpu_trial

#include "tests/gpu/both_fixtures.h"

namespace oomrec::gpu_trial {

inline void* new_block() {
  void* block = nullptr;
  need(f.hipMalloc(&block, kBytes));
  return block;
}
inline void free_block(void* block) { need(f.hipFree(block)); }

inline int allocate_from(hipMemPool_t pool, void** block) {
  return f.hipMallocFromPoolAsync(block, kBytes, pool, nullptr);
}

// hipGraphInstantiateParams: failed node, flags, result, stream.
struct InstantiateParams {
  hipGraphNode_t culprit = nullptr;
  unsigned long long flags = 0;
  int result = 0;
  hipStream_t stream = nullptr;
  hipGraphInstantiateParams* get() { return reinterpret_cast<hipGraphInstantiateParams*>(this); }
};

}  // namespace oomrec::gpu_trial

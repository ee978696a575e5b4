// Shared by the trials of CUDA's functions.
#pragma once

#include "tests/fake_gpu/both_types.h"
#include "tests/gpu/cuda_client.h"
#include "tests/gpu/own_session.h"

#define DRIVER(name) cu##name

namespace oomrec::gpu_trial {

inline constexpr Space kMain = Space::cuda, kHost = Space::cuda_host, kVa = Space::cuda_va;

#define X(name, ours, other) using name = ours;
BOTH_TYPES(X)
#undef X

inline constexpr auto kOnDevice = CU_MEM_LOCATION_TYPE_DEVICE;
inline constexpr int kAllocationNode = CU_GRAPH_NODE_TYPE_MEM_ALLOC;

}  // namespace oomrec::gpu_trial

#include "tests/gpu/both_fixtures.h"

namespace oomrec::gpu_trial {

inline CUdeviceptr new_block() {
  CUdeviceptr block = 0;
  need(f.cuMemAlloc_v2(&block, kBytes));
  return block;
}
inline void free_block(CUdeviceptr block) { need(f.cuMemFree_v2(block)); }

inline int allocate_from(CUmemoryPool pool, CUdeviceptr* block) {
  return f.cuMemAllocFromPoolAsync(block, kBytes, pool, nullptr);
}

// CUDA_GRAPH_INSTANTIATE_PARAMS: flags, stream, failed node, result.
struct InstantiateParams {
  cuuint64_t flags = 0;
  CUstream stream = nullptr;
  CUgraphNode culprit = nullptr;
  int result = 0;
  CUDA_GRAPH_INSTANTIATE_PARAMS* get() {
    return reinterpret_cast<CUDA_GRAPH_INSTANTIATE_PARAMS*>(this);
  }
};

}  // namespace oomrec::gpu_trial

// Shared by the trials of CUDA's functions.
#pragma once

#include "tests/gpu/cuda_client.h"
#include "tests/gpu/trial.h"

namespace oomrec::gpu_trial {

inline constexpr Space kMain = Space::cuda, kHost = Space::cuda_host, kVa = Space::cuda_va;

inline constexpr CUmemLocation kThere{CU_MEM_LOCATION_TYPE_DEVICE, kOrdinal};
inline constexpr CUmemAllocationProp kHandleProps{1, 0, kThere, nullptr, {}};
inline constexpr CUmemPoolProps kPoolProps{1, 0, kThere, nullptr, {}};

inline CUdeviceptr new_block() {
  CUdeviceptr block = 0;
  need(f.cuMemAlloc_v2(&block, kBytes));
  return block;
}

inline CUmemoryPool new_pool() {
  CUmemoryPool pool = nullptr;
  need(f.cuMemPoolCreate(&pool, &kPoolProps));
  return pool;
}

inline CUmemGenericAllocationHandle new_handle() {
  CUmemGenericAllocationHandle handle = 0;
  need(f.cuMemCreate(&handle, kBytes, &kHandleProps, 0));
  return handle;
}

// Memory mapped at an address, with its handle.
struct Mapped {
  CUmemGenericAllocationHandle handle = new_handle();
  CUdeviceptr address = 0;
  Mapped() {
    need(f.cuMemAddressReserve(&address, kBytes, 0, 0, 0));
    need(f.cuMemMap(address, kBytes, 0, handle, 0));
  }
  ~Mapped() {
    f.cuMemUnmap(address, kBytes);
    f.cuMemAddressFree(address, kBytes);
    f.cuMemRelease(handle);
  }
};

struct Graph {
  CUgraph graph = nullptr;
  CUgraphNode node = nullptr;
  Graph() { need(f.cuGraphCreate(&graph, 0)); }
  ~Graph() { f.cuGraphDestroy(graph); }

  CUdeviceptr add_block(std::uint64_t bytes = kBytes) {
    CUDA_MEM_ALLOC_NODE_PARAMS params{kPoolProps, nullptr, 0, bytes, 0};
    need(f.cuGraphAddMemAllocNode(&node, graph, nullptr, 0, &params));
    return params.dptr;
  }
  void add_free(CUdeviceptr block) {
    need(f.cuGraphAddMemFreeNode(&node, graph, nullptr, 0, block));
  }
  CUgraphExec instantiate() {
    CUgraphExec exec = nullptr;
    need(f.cuGraphInstantiateWithFlags(&exec, graph, 0));
    return exec;
  }
};

}  // namespace oomrec::gpu_trial

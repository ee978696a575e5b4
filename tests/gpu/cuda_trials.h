// Shared by the trials of CUDA's functions.
#pragma once

#include "tests/gpu/cuda_client.h"
#include "tests/gpu/trial.h"

#define DRIVER(name) cu##name

namespace oomrec::gpu_trial {

inline constexpr Space kMain = Space::cuda, kHost = Space::cuda_host, kVa = Space::cuda_va;

using AllocationNode = CUDA_MEM_ALLOC_NODE_PARAMS;
using ExternalBuffer = CUDA_EXTERNAL_MEMORY_BUFFER_DESC;
using ExternalDescription = CUDA_EXTERNAL_MEMORY_HANDLE_DESC;
using ExternalMemory = CUexternalMemory;
using GraphExec = CUgraphExec;
using GraphHandle = CUgraph;
using Handle = CUmemGenericAllocationHandle;
using IpcHandle = CUipcMemHandle;
using Library = CUlibrary;
using Location = CUmemLocation;
using MemoryPool = CUmemoryPool;
using Module = CUmodule;
using NodeParams = CUgraphNodeParams;
using Pointer = CUdeviceptr;
using SharedPoolPointer = CUmemPoolPtrExportData;

inline constexpr CUmemLocation kThere{CU_MEM_LOCATION_TYPE_DEVICE, kOrdinal};
inline constexpr CUmemAllocationProp kHandleProps{1, 0, kThere, nullptr, {}};
inline constexpr CUmemPoolProps kPoolProps{1, 0, kThere, nullptr, {}};
inline constexpr int kAllocationNode = CU_GRAPH_NODE_TYPE_MEM_ALLOC;

inline CUdeviceptr new_block() {
  CUdeviceptr block = 0;
  need(f.cuMemAlloc_v2(&block, kBytes));
  return block;
}
inline void free_block(CUdeviceptr block) { need(f.cuMemFree_v2(block)); }

inline CUmemoryPool new_pool() {
  CUmemoryPool pool = nullptr;
  need(f.cuMemPoolCreate(&pool, &kPoolProps));
  return pool;
}
inline int allocate_from(CUmemoryPool pool, CUdeviceptr* block) {
  return f.cuMemAllocFromPoolAsync(block, kBytes, pool, nullptr);
}

inline CUmemGenericAllocationHandle new_handle() {
  CUmemGenericAllocationHandle handle = 0;
  need(f.cuMemCreate(&handle, kBytes, &kHandleProps, 0));
  return handle;
}

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

// Shared by the trials of HIP's functions.
#pragma once

#include "tests/gpu/hip_client.h"
#include "tests/gpu/trial.h"

#define DRIVER(name) hip##name

namespace oomrec::gpu_trial {

inline constexpr Space kMain = Space::hip, kHost = Space::hip_host, kVa = Space::hip_va;

using AllocationNode = hipMemAllocNodeParams;
using ExternalBuffer = hipExternalMemoryBufferDesc;
using ExternalDescription = hipExternalMemoryHandleDesc;
using ExternalMemory = hipExternalMemory_t;
using GraphExec = hipGraphExec_t;
using GraphHandle = hipGraph_t;
using Handle = hipMemGenericAllocationHandle_t;
using IpcHandle = hipIpcMemHandle_t;
using Library = hipLibrary_t;
using Location = hipMemLocation;
using MemoryPool = hipMemPool_t;
using Module = hipModule_t;
using NodeParams = hipGraphNodeParams;
using Pointer = void*;
using SharedPoolPointer = hipMemPoolPtrExportData;

inline constexpr hipMemLocation kThere{hipMemLocationTypeDevice, kOrdinal};
inline constexpr hipMemAllocationProp kHandleProps{1, 0, kThere, nullptr, {}};
inline constexpr hipMemPoolProps kPoolProps{1, 0, kThere, nullptr, {}};
inline constexpr int kAllocationNode = hipGraphNodeTypeMemAlloc;

inline void* new_block() {
  void* block = nullptr;
  need(f.hipMalloc(&block, kBytes));
  return block;
}
inline void free_block(void* block) { need(f.hipFree(block)); }

inline hipMemPool_t new_pool() {
  hipMemPool_t pool = nullptr;
  need(f.hipMemPoolCreate(&pool, &kPoolProps));
  return pool;
}
inline int allocate_from(hipMemPool_t pool, void** block) {
  return f.hipMallocFromPoolAsync(block, kBytes, pool, nullptr);
}

inline hipMemGenericAllocationHandle_t new_handle() {
  hipMemGenericAllocationHandle_t handle = nullptr;
  need(f.hipMemCreate(&handle, kBytes, &kHandleProps, 0));
  return handle;
}

struct Graph {
  hipGraph_t graph = nullptr;
  hipGraphNode_t node = nullptr;
  Graph() { need(f.hipGraphCreate(&graph, 0)); }
  ~Graph() { f.hipGraphDestroy(graph); }

  void* add_block() {
    hipMemAllocNodeParams params{kPoolProps, nullptr, 0, kBytes, nullptr};
    need(f.hipGraphAddMemAllocNode(&node, graph, nullptr, 0, &params));
    return params.dptr;
  }
  hipGraphExec_t instantiate() {
    hipGraphExec_t exec = nullptr;
    need(f.hipGraphInstantiateWithFlags(&exec, graph, 0));
    return exec;
  }
};

// hipGraphInstantiateParams: failed node, flags, result, stream.
struct InstantiateParams {
  hipGraphNode_t culprit = nullptr;
  unsigned long long flags = 0;
  int result = 0;
  hipStream_t stream = nullptr;
  hipGraphInstantiateParams* get() { return reinterpret_cast<hipGraphInstantiateParams*>(this); }
};

}  // namespace oomrec::gpu_trial

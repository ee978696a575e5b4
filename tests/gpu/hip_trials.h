// Shared by the trials of HIP's functions.
#pragma once

#include "tests/gpu/hip_client.h"
#include "tests/gpu/own_session.h"

#define DRIVER(name) hip##name

namespace oomrec::gpu_trial {

inline constexpr Space kMain = Space::hip, kHost = Space::hip_host, kVa = Space::hip_va;

using AllocationNode = hipMemAllocNodeParams;
using ExternalBuffer = hipExternalMemoryBufferDesc;
using ExternalDescription = hipExternalMemoryHandleDesc;
using ExternalMemory = hipExternalMemory_t;
using GraphExec = hipGraphExec_t;
using GraphHandle = hipGraph_t;
using GraphNode = hipGraphNode_t;
using Handle = hipMemGenericAllocationHandle_t;
using HandleProps = hipMemAllocationProp;
using IpcHandle = hipIpcMemHandle_t;
using Library = hipLibrary_t;
using Location = hipMemLocation;
using MemoryPool = hipMemPool_t;
using Module = hipModule_t;
using NodeParams = hipGraphNodeParams;
using Pointer = void*;
using PoolProps = hipMemPoolProps;
using SharedPoolPointer = hipMemPoolPtrExportData;

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

// Types that CUDA and HIP both have: their name in what is written once for both, CUDA's, HIP's.
#pragma once

// clang-format off
#define BOTH_TYPES(X) \
  X(AllocationNode, CUDA_MEM_ALLOC_NODE_PARAMS, hipMemAllocNodeParams) \
  X(AllocationType, CUmemAllocationType, hipMemAllocationType) \
  X(ContextHandle, CUcontext, hipCtx_t) \
  X(EventHandle, CUevent, hipEvent_t) \
  X(ExternalBuffer, CUDA_EXTERNAL_MEMORY_BUFFER_DESC, hipExternalMemoryBufferDesc) \
  X(ExternalDescription, CUDA_EXTERNAL_MEMORY_HANDLE_DESC, hipExternalMemoryHandleDesc) \
  X(ExternalMemory, CUexternalMemory, hipExternalMemory_t) \
  X(GraphExec, CUgraphExec, hipGraphExec_t) \
  X(GraphHandle, CUgraph, hipGraph_t) \
  X(GraphNode, CUgraphNode, hipGraphNode_t) \
  X(HandleProps, CUmemAllocationProp, hipMemAllocationProp) \
  X(HandleType, CUmemAllocationHandleType, hipMemAllocationHandleType) \
  X(IpcHandle, CUipcMemHandle, hipIpcMemHandle_t) \
  X(JitOption, CUjit_option, hipJitOption) \
  X(Library, CUlibrary, hipLibrary_t) \
  X(LibraryOption, CUlibraryOption, hipLibraryOption) \
  X(Location, CUmemLocation, hipMemLocation) \
  X(MemoryHandle, CUmemGenericAllocationHandle, hipMemGenericAllocationHandle_t) \
  X(MemoryPool, CUmemoryPool, hipMemPool_t) \
  X(Module, CUmodule, hipModule_t) \
  X(NodeParams, CUgraphNodeParams, hipGraphNodeParams) \
  X(Pointer, CUdeviceptr, void*) \
  X(PoolProps, CUmemPoolProps, hipMemPoolProps) \
  X(SharedPoolPointer, CUmemPoolPtrExportData, hipMemPoolPtrExportData)
// clang-format on

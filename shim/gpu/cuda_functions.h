// The functions of the CUDA driver that the library wraps, under every exported name. Declarations,
// wrappers, the lookup filter and tests are all generated from this table.
//
// An action (shim/gpu/actions/) defines what the call means. It is constructed from the parameters
// before the real call, and reads what the driver wrote through them afterwards; any of them may be
// NULL. Types are in shim/gpu/cuda_types.h. The test gpu_abi uses the vendor's instead, so names
// are the vendor's. A function is in the list of the first CUDA release series that has it.
//
// Kernel launches are not included: they allocate no recorded memory, and are too frequent.
#pragma once

// clang-format off
//  exported name, base name (oomrec::Api), parameters, arguments, action
#define OOMREC_CUDA_FUNCTIONS_11(X) \
  /* contexts */ \
  X(cuCtxCreate,                  cuCtxCreate,               (CUcontext* context, unsigned int flags, CUdevice device), \
                                                             (context, flags, device), MadeContext{context, device}) \
  X(cuCtxCreate_v2,               cuCtxCreate,               (CUcontext* context, unsigned int flags, CUdevice device), \
                                                             (context, flags, device), MadeContext{context, device}) \
  X(cuCtxCreate_v3,               cuCtxCreate, \
    (CUcontext* context, CUexecAffinityParam* affinities, int count, unsigned int flags, CUdevice device), \
    (context, affinities, count, flags, device), MadeContext{context, device}) \
  X(cuCtxDestroy,                 cuCtxDestroy,              (CUcontext context),                   (context),         ContextEnd{context}) \
  X(cuCtxDestroy_v2,              cuCtxDestroy,              (CUcontext context),                   (context),         ContextEnd{context}) \
  X(cuDevicePrimaryCtxRetain,     cuDevicePrimaryCtxRetain,  (CUcontext* context, CUdevice device), (context, device), PrimaryRetained{context, device}) \
  X(cuDevicePrimaryCtxRelease,    cuDevicePrimaryCtxRelease, (CUdevice device),                     (device),          PrimaryRelease{device}) \
  X(cuDevicePrimaryCtxRelease_v2, cuDevicePrimaryCtxRelease, (CUdevice device),                     (device),          PrimaryRelease{device}) \
  X(cuDevicePrimaryCtxReset,      cuDevicePrimaryCtxReset,   (CUdevice device),                     (device),          DeviceReset{device}) \
  X(cuDevicePrimaryCtxReset_v2,   cuDevicePrimaryCtxReset,   (CUdevice device),                     (device),          DeviceReset{device}) \
  /* modules: with lazy loading, a look-up of a function loads it */ \
  X(cuModuleLoad,          cuModuleLoad,          (CUmodule* module, const char* path),                      (module, path),           Fallible{}) \
  X(cuModuleLoadData,      cuModuleLoadData,      (CUmodule* module, const void* image),                     (module, image),          Fallible{}) \
  X(cuModuleLoadDataEx,    cuModuleLoadDataEx,    (CUmodule* module, const void* image, unsigned int count, CUjit_option* options, void** values), \
                                                  (module, image, count, options, values), Fallible{}) \
  X(cuModuleLoadFatBinary, cuModuleLoadFatBinary, (CUmodule* module, const void* image),                     (module, image),          Fallible{}) \
  X(cuModuleGetFunction,   cuModuleGetFunction,   (CUfunction* function, CUmodule module, const char* name), (function, module, name), Fallible{}) \
  /* streams and events */ \
  X(cuStreamCreate,             cuStreamCreate,             (CUstream* stream, unsigned int flags), (stream, flags), Fallible{}) \
  X(cuStreamCreateWithPriority, cuStreamCreateWithPriority, (CUstream* stream, unsigned int flags, int priority), \
                                                            (stream, flags, priority), Fallible{}) \
  X(cuEventCreate,              cuEventCreate,              (CUevent* event, unsigned int flags),   (event, flags),  Fallible{}) \
  /* device memory */ \
  X(cuMemAlloc,         cuMemAlloc,        (CUdeviceptr_v1* block, unsigned int bytes), (block, bytes), Block(block, bytes)) \
  X(cuMemAlloc_v2,      cuMemAlloc,        (CUdeviceptr* block, size_t bytes),          (block, bytes), Block(block, bytes)) \
  X(cuMemAllocPitch,    cuMemAllocPitch,   (CUdeviceptr_v1* block, unsigned int* pitch, unsigned int width, unsigned int rows, unsigned int element), \
                                           (block, pitch, width, rows, element), PitchedBlock{block, pitch, width, rows}) \
  X(cuMemAllocPitch_v2, cuMemAllocPitch,   (CUdeviceptr* block, size_t* pitch, size_t width, size_t rows, unsigned int element), \
                                           (block, pitch, width, rows, element), PitchedBlock{block, pitch, width, rows}) \
  X(cuMemAllocManaged,  cuMemAllocManaged, (CUdeviceptr* block, size_t bytes, unsigned int flags), \
                                           (block, bytes, flags), ManagedBlock(block, bytes)) \
  X(cuMemFree,          cuMemFree,         (CUdeviceptr_v1 block),                      (block),        FreedBlock(block)) \
  X(cuMemFree_v2,       cuMemFree,         (CUdeviceptr block),                         (block),        FreedBlock(block)) \
  /* host memory */ \
  X(cuMemAllocHost,       cuMemAllocHost,      (void** block, unsigned int bytes),               (block, bytes),        HostBlock(block, bytes)) \
  X(cuMemAllocHost_v2,    cuMemAllocHost,      (void** block, size_t bytes),                     (block, bytes),        HostBlock(block, bytes)) \
  X(cuMemHostAlloc,       cuMemHostAlloc,      (void** block, size_t bytes, unsigned int flags), (block, bytes, flags), HostBlock(block, bytes)) \
  X(cuMemFreeHost,        cuMemFreeHost,       (void* block),                                    (block),               FreedHost(block)) \
  X(cuMemHostRegister,    cuMemHostRegister,   (void* address, size_t bytes, unsigned int flags), \
                                               (address, bytes, flags), HostRegistration{address, bytes}) \
  X(cuMemHostRegister_v2, cuMemHostRegister,   (void* address, size_t bytes, unsigned int flags), \
                                               (address, bytes, flags), HostRegistration{address, bytes}) \
  X(cuMemHostUnregister,  cuMemHostUnregister, (void* address),                                  (address),             Unregistered(address)) \
  /* stream-ordered memory and pools */ \
  X(cuMemAllocAsync,                    cuMemAllocAsync,                    (CUdeviceptr* block, size_t bytes, CUstream stream), \
                                                                            (block, bytes, stream), OrderedBlock{block, bytes, stream, nullptr}) \
  X(cuMemAllocAsync_ptsz,               cuMemAllocAsync,                    (CUdeviceptr* block, size_t bytes, CUstream stream), \
                                                                            (block, bytes, stream), OrderedBlock{block, bytes, stream, nullptr}) \
  X(cuMemAllocFromPoolAsync,            cuMemAllocFromPoolAsync,            (CUdeviceptr* block, size_t bytes, CUmemoryPool pool, CUstream stream), \
                                                                            (block, bytes, pool, stream), OrderedBlock{block, bytes, stream, pool}) \
  X(cuMemAllocFromPoolAsync_ptsz,       cuMemAllocFromPoolAsync,            (CUdeviceptr* block, size_t bytes, CUmemoryPool pool, CUstream stream), \
                                                                            (block, bytes, pool, stream), OrderedBlock{block, bytes, stream, pool}) \
  X(cuMemFreeAsync,                     cuMemFreeAsync,                     (CUdeviceptr block, CUstream stream), \
                                                                            (block, stream), FreedOrdered{block, stream}) \
  X(cuMemFreeAsync_ptsz,                cuMemFreeAsync,                     (CUdeviceptr block, CUstream stream), \
                                                                            (block, stream), FreedOrdered{block, stream}) \
  X(cuMemPoolCreate,                    cuMemPoolCreate,                    (CUmemoryPool* pool, const CUmemPoolProps* props), \
                                                                            (pool, props), Pool{pool, props}) \
  X(cuMemPoolImportFromShareableHandle, cuMemPoolImportFromShareableHandle, \
    (CUmemoryPool* pool, void* shared, CUmemAllocationHandleType type, unsigned long long flags), \
    (pool, shared, type, flags), ImportedPool(pool)) \
  X(cuMemPoolImportPointer,             cuMemPoolImportPointer,             (CUdeviceptr* block, CUmemoryPool pool, CUmemPoolPtrExportData* shared), \
                                                                            (block, pool, shared), ImportedPointer(block)) \
  X(cuMemPoolTrimTo,                    cuMemPoolTrimTo,                    (CUmemoryPool pool, size_t bytes), (pool, bytes), TrimmedPool{pool}) \
  X(cuMemPoolDestroy,                   cuMemPoolDestroy,                   (CUmemoryPool pool),               (pool),        DestroyedPool{pool}) \
  X(cuDeviceGetDefaultMemPool,          cuDeviceGetDefaultMemPool,          (CUmemoryPool* pool, CUdevice device), \
                                                                            (pool, device), DevicePool{pool, device}) \
  X(cuDeviceGetMemPool,                 cuDeviceGetMemPool,                 (CUmemoryPool* pool, CUdevice device), \
                                                                            (pool, device), DevicePool{pool, device}) \
  X(cuDeviceSetMemPool,                 cuDeviceSetMemPool,                 (CUdevice device, CUmemoryPool pool), \
                                                                            (device, pool), SelectedPool(device, pool)) \
  /* virtual memory */ \
  X(cuMemCreate,                    cuMemCreate, \
    (CUmemGenericAllocationHandle* handle, size_t bytes, const CUmemAllocationProp* props, unsigned long long flags), \
    (handle, bytes, props, flags), Handle{handle, bytes, props}) \
  X(cuMemImportFromShareableHandle, cuMemImportFromShareableHandle, \
    (CUmemGenericAllocationHandle* handle, void* shared, CUmemAllocationHandleType type), \
    (handle, shared, type), ImportedHandle(handle)) \
  X(cuMemRetainAllocationHandle,    cuMemRetainAllocationHandle,    (CUmemGenericAllocationHandle* handle, void* address), \
                                                                    (handle, address), RetainedHandle{handle}) \
  X(cuMemRelease,                   cuMemRelease,                   (CUmemGenericAllocationHandle handle), (handle),         ReleasedHandle(handle)) \
  X(cuMemAddressReserve,            cuMemAddressReserve, \
    (CUdeviceptr* address, size_t bytes, size_t alignment, CUdeviceptr wanted, unsigned long long flags), \
    (address, bytes, alignment, wanted, flags), Reservation(address, bytes)) \
  X(cuMemAddressFree,               cuMemAddressFree,               (CUdeviceptr address, size_t bytes), \
                                                                    (address, bytes), FreedReservation(address, bytes)) \
  X(cuMemMap,                       cuMemMap, \
    (CUdeviceptr address, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle, unsigned long long flags), \
    (address, bytes, offset, handle, flags), Mapping{address, bytes, handle}) \
  X(cuMemUnmap,                     cuMemUnmap,                     (CUdeviceptr address, size_t bytes),   (address, bytes), Unmapped{address, bytes}) \
  X(cuMemMapArrayAsync,             cuMemMapArrayAsync,             (CUarrayMapInfo* changes, unsigned int count, CUstream stream), \
                                                                    (changes, count, stream), SparseMapping(changes, count)) \
  X(cuMemMapArrayAsync_ptsz,        cuMemMapArrayAsync,             (CUarrayMapInfo* changes, unsigned int count, CUstream stream), \
                                                                    (changes, count, stream), SparseMapping(changes, count)) \
  /* arrays */ \
  X(cuArrayCreate,           cuArrayCreate,           (CUarray* array, const CUDA_ARRAY_DESCRIPTOR_v1* shape), \
                                                      (array, shape), Array(array, bytes_of(shape))) \
  X(cuArrayCreate_v2,        cuArrayCreate,           (CUarray* array, const CUDA_ARRAY_DESCRIPTOR* shape), \
                                                      (array, shape), Array(array, bytes_of(shape))) \
  X(cuArray3DCreate,         cuArray3DCreate,         (CUarray* array, const CUDA_ARRAY3D_DESCRIPTOR_v1* shape), \
                                                      (array, shape), Array(array, bytes_of(shape))) \
  X(cuArray3DCreate_v2,      cuArray3DCreate,         (CUarray* array, const CUDA_ARRAY3D_DESCRIPTOR* shape), \
                                                      (array, shape), Array(array, bytes_of(shape))) \
  X(cuArrayDestroy,          cuArrayDestroy,          (CUarray array),          (array), FreedArray(array)) \
  X(cuMipmappedArrayCreate,  cuMipmappedArrayCreate,  (CUmipmappedArray* array, const CUDA_ARRAY3D_DESCRIPTOR* shape, unsigned int levels), \
                                                      (array, shape, levels), MipmappedArray(array, bytes_of(shape, levels))) \
  X(cuMipmappedArrayDestroy, cuMipmappedArrayDestroy, (CUmipmappedArray array), (array), FreedMipmapped(array)) \
  /* memory of other processes and interfaces */ \
  X(cuIpcOpenMemHandle,                      cuIpcOpenMemHandle,                      (CUdeviceptr* block, CUipcMemHandle shared, unsigned int flags), \
                                                                                      (block, shared, flags), OpenedIpc(block)) \
  X(cuIpcOpenMemHandle_v2,                   cuIpcOpenMemHandle,                      (CUdeviceptr* block, CUipcMemHandle shared, unsigned int flags), \
                                                                                      (block, shared, flags), OpenedIpc(block)) \
  X(cuIpcCloseMemHandle,                     cuIpcCloseMemHandle,                     (CUdeviceptr block), (block), ClosedIpc(block)) \
  X(cuImportExternalMemory,                  cuImportExternalMemory, \
    (CUexternalMemory* memory, const CUDA_EXTERNAL_MEMORY_HANDLE_DESC* shared), \
    (memory, shared), External(memory, shared)) \
  X(cuExternalMemoryGetMappedBuffer,         cuExternalMemoryGetMappedBuffer, \
    (CUdeviceptr* block, CUexternalMemory memory, const CUDA_EXTERNAL_MEMORY_BUFFER_DESC* part), \
    (block, memory, part), Fallible{}) \
  X(cuExternalMemoryGetMappedMipmappedArray, cuExternalMemoryGetMappedMipmappedArray, \
    (CUmipmappedArray* array, CUexternalMemory memory, const CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC* part), \
    (array, memory, part), Fallible{}) \
  X(cuDestroyExternalMemory,                 cuDestroyExternalMemory,                 (CUexternalMemory memory), \
                                                                                      (memory), DestroyedExternal(memory)) \
  /* graphs */ \
  X(cuGraphCreate,               cuGraphCreate,               (CUgraph* graph, unsigned int flags), (graph, flags),    Fallible{}) \
  X(cuGraphClone,                cuGraphClone,                (CUgraph* graph, CUgraph original),   (graph, original), ClonedGraph(graph, original)) \
  X(cuGraphDestroy,              cuGraphDestroy,              (CUgraph graph),                      (graph),           DestroyedGraph{graph}) \
  X(cuGraphAddMemAllocNode,      cuGraphAddMemAllocNode, \
    (CUgraphNode* node, CUgraph graph, const CUgraphNode* after, size_t count, CUDA_MEM_ALLOC_NODE_PARAMS* params), \
    (node, graph, after, count, params), GraphBlock{graph, params}) \
  X(cuGraphAddMemFreeNode,       cuGraphAddMemFreeNode, \
    (CUgraphNode* node, CUgraph graph, const CUgraphNode* after, size_t count, CUdeviceptr block), \
    (node, graph, after, count, block), GraphFree{graph, block}) \
  X(cuGraphAddChildGraphNode,    cuGraphAddChildGraphNode, \
    (CUgraphNode* node, CUgraph graph, const CUgraphNode* after, size_t count, CUgraph child), \
    (node, graph, after, count, child), ChildGraph(graph, child)) \
  X(cuGraphInstantiate,          cuGraphInstantiate,          (CUgraphExec* exec, CUgraph graph, CUgraphNode* culprit, char* log, size_t size), \
                                                              (exec, graph, culprit, log, size), Instantiated{exec, graph}) \
  X(cuGraphInstantiate_v2,       cuGraphInstantiate,          (CUgraphExec* exec, CUgraph graph, CUgraphNode* culprit, char* log, size_t size), \
                                                              (exec, graph, culprit, log, size), Instantiated{exec, graph}) \
  X(cuGraphInstantiateWithFlags, cuGraphInstantiateWithFlags, (CUgraphExec* exec, CUgraph graph, unsigned long long flags), \
                                                              (exec, graph, flags), Instantiated{exec, graph}) \
  X(cuGraphUpload,               cuGraphUpload,               (CUgraphExec exec, CUstream stream),  (exec, stream),    Fallible{}) \
  X(cuGraphUpload_ptsz,          cuGraphUpload,               (CUgraphExec exec, CUstream stream),  (exec, stream),    Fallible{}) \
  X(cuGraphLaunch,               cuGraphLaunch,               (CUgraphExec exec, CUstream stream),  (exec, stream),    Launched{exec}) \
  X(cuGraphLaunch_ptsz,          cuGraphLaunch,               (CUgraphExec exec, CUstream stream),  (exec, stream),    Launched{exec}) \
  X(cuGraphExecDestroy,          cuGraphExecDestroy,          (CUgraphExec exec),                   (exec),            DestroyedExec{exec}) \
  X(cuDeviceGraphMemTrim,        cuDeviceGraphMemTrim,        (CUdevice device),                    (device),          GraphTrim(device)) \
  /* look-ups */ \
  X(cuGetProcAddress, cuGetProcAddress, (const char* name, void** function, int version, cuuint64_t flags), \
                                        (name, function, version, flags), Resolver{name, function})

#define OOMREC_CUDA_FUNCTIONS_12(X) \
  /* contexts */ \
  X(cuCtxCreate_v4,   cuCtxCreate,      (CUcontext* context, CUctxCreateParams* params, unsigned int flags, CUdevice device), \
                                        (context, params, flags, device), MadeContext{context, device}) \
  X(cuGreenCtxCreate, cuGreenCtxCreate, (CUgreenCtx* context, CUdevResourceDesc resources, CUdevice device, unsigned int flags), \
                                        (context, resources, device, flags), MadeContext{context, device}) \
  /* modules */ \
  X(cuLibraryLoadData,     cuLibraryLoadData, \
    (CUlibrary* library, const void* code, CUjit_option* jit, void** jit_values, unsigned int jit_count, CUlibraryOption* options, void** values, unsigned int count), \
    (library, code, jit, jit_values, jit_count, options, values, count), Fallible{}) \
  X(cuLibraryLoadFromFile, cuLibraryLoadFromFile, \
    (CUlibrary* library, const char* path, CUjit_option* jit, void** jit_values, unsigned int jit_count, CUlibraryOption* options, void** values, unsigned int count), \
    (library, path, jit, jit_values, jit_count, options, values, count), Fallible{}) \
  X(cuLibraryGetModule,    cuLibraryGetModule,    (CUmodule* module, CUlibrary library),   (module, library),  Fallible{}) \
  X(cuKernelGetFunction,   cuKernelGetFunction,   (CUfunction* function, CUkernel kernel), (function, kernel), Fallible{}) \
  /* streams */ \
  X(cuGreenCtxStreamCreate, cuGreenCtxStreamCreate, (CUstream* stream, CUgreenCtx context, unsigned int flags, int priority), \
                                                    (stream, context, flags, priority), Fallible{}) \
  /* multicast: memory of several devices behind one address */ \
  X(cuMulticastCreate,   cuMulticastCreate,   (CUmemGenericAllocationHandle* multicast, const CUmulticastObjectProp* props), \
                                              (multicast, props), MulticastHandle(multicast, props)) \
  X(cuMulticastBindMem,  cuMulticastBindMem, \
    (CUmemGenericAllocationHandle multicast, size_t offset, CUmemGenericAllocationHandle handle, size_t from, size_t bytes, unsigned long long flags), \
    (multicast, offset, handle, from, bytes, flags), BoundHandle(multicast, offset, handle, bytes)) \
  X(cuMulticastBindAddr, cuMulticastBindAddr, \
    (CUmemGenericAllocationHandle multicast, size_t offset, CUdeviceptr address, size_t bytes, unsigned long long flags), \
    (multicast, offset, address, bytes, flags), BoundAddress(multicast, offset, address, bytes)) \
  X(cuMulticastUnbind,   cuMulticastUnbind,   (CUmemGenericAllocationHandle multicast, CUdevice device, size_t offset, size_t bytes), \
                                              (multicast, device, offset, bytes), Unbound(multicast, device, offset, bytes)) \
  /* graphs */ \
  X(cuGraphAddNode,                    cuGraphAddNode, \
    (CUgraphNode* node, CUgraph graph, const CUgraphNode* after, size_t count, CUgraphNodeParams* params), \
    (node, graph, after, count, params), GraphNode{graph, params}) \
  X(cuGraphAddNode_v2,                 cuGraphAddNode, \
    (CUgraphNode* node, CUgraph graph, const CUgraphNode* after, const CUgraphEdgeData* edges, size_t count, CUgraphNodeParams* params), \
    (node, graph, after, edges, count, params), GraphNode{graph, params}) \
  X(cuGraphInstantiateWithParams,      cuGraphInstantiateWithParams, (CUgraphExec* exec, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS* params), \
                                                                     (exec, graph, params), Instantiated{exec, graph}) \
  X(cuGraphInstantiateWithParams_ptsz, cuGraphInstantiateWithParams, (CUgraphExec* exec, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS* params), \
                                                                     (exec, graph, params), Instantiated{exec, graph}) \
  /* look-ups */ \
  X(cuGetProcAddress_v2, cuGetProcAddress, (const char* name, void** function, int version, cuuint64_t flags, CUdriverProcAddressQueryResult* status), \
                                           (name, function, version, flags, status), Resolver{name, function})

#define OOMREC_CUDA_FUNCTIONS_13(X) \
  /* pools */ \
  X(cuMemGetDefaultMemPool, cuMemGetDefaultMemPool, (CUmemoryPool* pool, CUmemLocation* location, CUmemAllocationType type), \
                                                    (pool, location, type), DevicePool{pool, device_of(location)}) \
  X(cuMemGetMemPool,        cuMemGetMemPool,        (CUmemoryPool* pool, CUmemLocation* location, CUmemAllocationType type), \
                                                    (pool, location, type), DevicePool{pool, device_of(location)}) \
  X(cuMemSetMemPool,        cuMemSetMemPool,        (CUmemLocation* location, CUmemAllocationType type, CUmemoryPool pool), \
                                                    (location, type, pool), SelectedPool(device_of(location), pool)) \
  /* multicast */ \
  X(cuMulticastBindMem_v2,  cuMulticastBindMem, \
    (CUmemGenericAllocationHandle multicast, CUdevice device, size_t offset, CUmemGenericAllocationHandle handle, size_t from, size_t bytes, unsigned long long flags), \
    (multicast, device, offset, handle, from, bytes, flags), BoundHandle(multicast, offset, handle, bytes)) \
  X(cuMulticastBindAddr_v2, cuMulticastBindAddr, \
    (CUmemGenericAllocationHandle multicast, CUdevice device, size_t offset, CUdeviceptr address, size_t bytes, unsigned long long flags), \
    (multicast, device, offset, address, bytes, flags), BoundAddress(multicast, offset, address, bytes)) \
  /* graphs */ \
  X(cuGraphAddNode_v3, cuGraphAddNode, \
    (CUgraphNode* node, CUgraph graph, const CUgraphNode* after, const CUgraphEdgeData* edges, size_t count, CUgraphNodeParams* params), \
    (node, graph, after, edges, count, params), GraphNode{graph, params})

#define OOMREC_CUDA_FUNCTIONS(X) OOMREC_CUDA_FUNCTIONS_11(X) OOMREC_CUDA_FUNCTIONS_12(X) OOMREC_CUDA_FUNCTIONS_13(X)

// Those that we call as queries: like the others, without an action.
#define OOMREC_CUDA_QUERIES(X) \
  X(cuCtxGetCurrent,              (CUcontext* context)) \
  X(cuCtxGetDevice,               (CUdevice* device)) \
  X(cuStreamGetCtx,               (CUstream stream, CUcontext* context)) \
  X(cuMemGetInfo_v2,              (size_t* free, size_t* total)) \
  X(cuDeviceGetUuid,              (CUuuid* uuid, CUdevice device)) \
  X(cuDeviceGetName,              (char* name, int size, CUdevice device)) \
  X(cuDriverGetVersion,           (int* version)) \
  X(cuStreamGetCaptureInfo_v2,    (CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id, CUgraph* graph, const CUgraphNode** dependencies, size_t* count)) \
  X(cuThreadExchangeStreamCaptureMode, (CUstreamCaptureMode* mode)) \
  X(cuMemGetAddressRange_v2,      (CUdeviceptr* base, size_t* bytes, CUdeviceptr address)) \
  X(cuDeviceGetMemPool,           (CUmemoryPool* pool, CUdevice device)) \
  X(cuMemPoolGetAttribute,        (CUmemoryPool pool, CUmemPool_attribute attribute, void* value)) \
  X(cuDevicePrimaryCtxGetState,   (CUdevice device, unsigned int* flags, int* active))
// clang-format on

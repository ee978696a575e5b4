// The functions of the HIP runtime that the library wraps; like shim/gpu/cuda_functions.h for CUDA.
//
// Types: shim/gpu/hip_types.h.
#pragma once

// clang-format off
//  exported name, base name (oomrec::Api), parameters, arguments, action
// Functions of HIP 5.2, whose headers the test gpu_abi uses.
#define OOMREC_HIP_FUNCTIONS_5_2(X) \
  /* devices and contexts */ \
  X(hipCtxCreate,   hipCtxCreate,   (hipCtx_t* context, unsigned int flags, hipDevice_t device), (context, flags, device), MadeContext{context, device}) \
  X(hipDeviceReset, hipDeviceReset, (),                                                          (),                       CurrentDeviceReset{}) \
  /* modules */ \
  X(hipModuleLoad,       hipModuleLoad,       (hipModule_t* module, const char* path),  (module, path),  Fallible{}) \
  X(hipModuleLoadData,   hipModuleLoadData,   (hipModule_t* module, const void* image), (module, image), Fallible{}) \
  X(hipModuleLoadDataEx, hipModuleLoadDataEx, (hipModule_t* module, const void* image, unsigned int count, hipJitOption* options, void** values), \
                                              (module, image, count, options, values), Fallible{}) \
  /* streams and events */ \
  X(hipStreamCreate,              hipStreamCreate,              (hipStream_t* stream),                     (stream),        Fallible{}) \
  X(hipStreamCreateWithFlags,     hipStreamCreateWithFlags,     (hipStream_t* stream, unsigned int flags), (stream, flags), Fallible{}) \
  X(hipStreamCreateWithPriority,  hipStreamCreateWithPriority,  (hipStream_t* stream, unsigned int flags, int priority), \
                                                                (stream, flags, priority), Fallible{}) \
  X(hipExtStreamCreateWithCUMask, hipExtStreamCreateWithCUMask, (hipStream_t* stream, uint32_t words, const uint32_t* mask), \
                                                                (stream, words, mask), Fallible{}) \
  X(hipEventCreate,               hipEventCreate,               (hipEvent_t* event),                       (event),         Fallible{}) \
  X(hipEventCreateWithFlags,      hipEventCreateWithFlags,      (hipEvent_t* event, unsigned int flags),   (event, flags),  Fallible{}) \
  /* device memory */ \
  X(hipMalloc,             hipMalloc,             (void** block, size_t bytes),                     (block, bytes),        Block(block, bytes)) \
  X(hipExtMallocWithFlags, hipExtMallocWithFlags, (void** block, size_t bytes, unsigned int flags), (block, bytes, flags), Block(block, bytes)) \
  X(hipMallocPitch,        hipMallocPitch,        (void** block, size_t* pitch, size_t width, size_t rows), \
                                                  (block, pitch, width, rows), PitchedBlock{block, pitch, width, rows}) \
  X(hipMemAllocPitch,      hipMemAllocPitch,      (hipDeviceptr_t* block, size_t* pitch, size_t width, size_t rows, unsigned int element), \
                                                  (block, pitch, width, rows, element), PitchedBlock{block, pitch, width, rows}) \
  X(hipMalloc3D,           hipMalloc3D,           (hipPitchedPtr* block, hipExtent extent),         (block, extent),       Pitched3D{block, extent}) \
  X(hipMallocManaged,      hipMallocManaged,      (void** block, size_t bytes, unsigned int flags), \
                                                  (block, bytes, flags), ManagedBlock(block, bytes)) \
  X(hipFree,               hipFree,               (void* block),                                    (block),               FreedBlock(block)) \
  /* host memory */ \
  X(hipMallocHost,     hipMallocHost,     (void** block, size_t bytes),                     (block, bytes),        HostBlock(block, bytes)) \
  X(hipMemAllocHost,   hipMemAllocHost,   (void** block, size_t bytes),                     (block, bytes),        HostBlock(block, bytes)) \
  X(hipHostMalloc,     hipHostMalloc,     (void** block, size_t bytes, unsigned int flags), (block, bytes, flags), HostBlock(block, bytes)) \
  X(hipHostAlloc,      hipHostAlloc,      (void** block, size_t bytes, unsigned int flags), (block, bytes, flags), HostBlock(block, bytes)) \
  X(hipFreeHost,       hipFreeHost,       (void* block),                                    (block),               FreedHost(block)) \
  X(hipHostFree,       hipHostFree,       (void* block),                                    (block),               FreedHost(block)) \
  X(hipHostRegister,   hipHostRegister,   (void* address, size_t bytes, unsigned int flags), \
                                          (address, bytes, flags), HostRegistration{address, bytes}) \
  X(hipHostUnregister, hipHostUnregister, (void* address),                                  (address),             Unregistered(address)) \
  /* stream-ordered memory and pools */ \
  X(hipMallocAsync,                      hipMallocAsync,                      (void** block, size_t bytes, hipStream_t stream), \
                                                                              (block, bytes, stream), OrderedBlock{block, bytes, stream, nullptr}) \
  X(hipMallocFromPoolAsync,              hipMallocFromPoolAsync,              (void** block, size_t bytes, hipMemPool_t pool, hipStream_t stream), \
                                                                              (block, bytes, pool, stream), OrderedBlock{block, bytes, stream, pool}) \
  X(hipFreeAsync,                        hipFreeAsync,                        (void* block, hipStream_t stream), \
                                                                              (block, stream), FreedOrdered{block, stream}) \
  X(hipMemPoolCreate,                    hipMemPoolCreate,                    (hipMemPool_t* pool, const hipMemPoolProps* props), \
                                                                              (pool, props), Pool{pool, props}) \
  X(hipMemPoolImportFromShareableHandle, hipMemPoolImportFromShareableHandle, \
    (hipMemPool_t* pool, void* shared, hipMemAllocationHandleType type, unsigned int flags), \
    (pool, shared, type, flags), ImportedPool(pool)) \
  X(hipMemPoolImportPointer,             hipMemPoolImportPointer,             (void** block, hipMemPool_t pool, hipMemPoolPtrExportData* shared), \
                                                                              (block, pool, shared), ImportedPointer(block)) \
  X(hipMemPoolTrimTo,                    hipMemPoolTrimTo,                    (hipMemPool_t pool, size_t bytes), (pool, bytes), TrimmedPool{pool}) \
  X(hipMemPoolDestroy,                   hipMemPoolDestroy,                   (hipMemPool_t pool),               (pool),        DestroyedPool{pool}) \
  X(hipDeviceGetDefaultMemPool,          hipDeviceGetDefaultMemPool,          (hipMemPool_t* pool, int device), \
                                                                              (pool, device), DevicePool{pool, device}) \
  X(hipDeviceGetMemPool,                 hipDeviceGetMemPool,                 (hipMemPool_t* pool, int device), \
                                                                              (pool, device), DevicePool{pool, device}) \
  X(hipDeviceSetMemPool,                 hipDeviceSetMemPool,                 (int device, hipMemPool_t pool), \
                                                                              (device, pool), SelectedPool(device, pool)) \
  /* virtual memory */ \
  X(hipMemCreate,                    hipMemCreate, \
    (hipMemGenericAllocationHandle_t* handle, size_t bytes, const hipMemAllocationProp* props, unsigned long long flags), \
    (handle, bytes, props, flags), Handle{handle, bytes, props}) \
  X(hipMemImportFromShareableHandle, hipMemImportFromShareableHandle, \
    (hipMemGenericAllocationHandle_t* handle, void* shared, hipMemAllocationHandleType type), \
    (handle, shared, type), ImportedHandle(handle)) \
  X(hipMemRetainAllocationHandle,    hipMemRetainAllocationHandle,    (hipMemGenericAllocationHandle_t* handle, void* address), \
                                                                      (handle, address), RetainedHandle{handle}) \
  X(hipMemRelease,                   hipMemRelease,                   (hipMemGenericAllocationHandle_t handle), (handle),         ReleasedHandle(handle)) \
  X(hipMemAddressReserve,            hipMemAddressReserve, \
    (void** address, size_t bytes, size_t alignment, void* wanted, unsigned long long flags), \
    (address, bytes, alignment, wanted, flags), Reservation(address, bytes)) \
  X(hipMemAddressFree,               hipMemAddressFree,               (void* address, size_t bytes), \
                                                                      (address, bytes), FreedReservation(address, bytes)) \
  X(hipMemMap,                       hipMemMap, \
    (void* address, size_t bytes, size_t offset, hipMemGenericAllocationHandle_t handle, unsigned long long flags), \
    (address, bytes, offset, handle, flags), Mapping{address, bytes, handle}) \
  X(hipMemUnmap,                     hipMemUnmap,                     (void* address, size_t bytes),            (address, bytes), Unmapped{address, bytes}) \
  /* arrays */ \
  X(hipMallocArray,           hipMallocArray, \
    (hipArray_t* array, const hipChannelFormatDesc* element, size_t width, size_t height, unsigned int flags), \
    (array, element, width, height, flags), Array(array, bytes_of(element, {width, height, 0}, flags))) \
  X(hipMalloc3DArray,         hipMalloc3DArray, \
    (hipArray_t* array, const hipChannelFormatDesc* element, hipExtent extent, unsigned int flags), \
    (array, element, extent, flags), Array(array, bytes_of(element, extent, flags))) \
  X(hipArrayCreate,           hipArrayCreate,           (hipArray_t* array, const HIP_ARRAY_DESCRIPTOR* shape), \
                                                        (array, shape), Array(array, bytes_of(shape))) \
  X(hipArray3DCreate,         hipArray3DCreate,         (hipArray_t* array, const HIP_ARRAY3D_DESCRIPTOR* shape), \
                                                        (array, shape), Array(array, bytes_of(shape))) \
  X(hipFreeArray,             hipFreeArray,             (hipArray_t array),          (array), FreedArray(array)) \
  X(hipArrayDestroy,          hipArrayDestroy,          (hipArray_t array),          (array), FreedArray(array)) \
  X(hipMallocMipmappedArray,  hipMallocMipmappedArray, \
    (hipMipmappedArray_t* array, const hipChannelFormatDesc* element, hipExtent extent, unsigned int levels, unsigned int flags), \
    (array, element, extent, levels, flags), MipmappedArray(array, bytes_of(element, extent, flags, levels))) \
  X(hipMipmappedArrayCreate,  hipMipmappedArrayCreate,  (hipMipmappedArray_t* array, HIP_ARRAY3D_DESCRIPTOR* shape, unsigned int levels), \
                                                        (array, shape, levels), MipmappedArray(array, bytes_of(shape, levels))) \
  X(hipFreeMipmappedArray,    hipFreeMipmappedArray,    (hipMipmappedArray_t array), (array), FreedMipmapped(array)) \
  X(hipMipmappedArrayDestroy, hipMipmappedArrayDestroy, (hipMipmappedArray_t array), (array), FreedMipmapped(array)) \
  /* memory of other processes and interfaces */ \
  X(hipIpcOpenMemHandle,              hipIpcOpenMemHandle,              (void** block, hipIpcMemHandle_t shared, unsigned int flags), \
                                                                        (block, shared, flags), OpenedIpc(block)) \
  X(hipIpcCloseMemHandle,             hipIpcCloseMemHandle,             (void* block),                (block),  ClosedIpc(block)) \
  X(hipImportExternalMemory,          hipImportExternalMemory,          (hipExternalMemory_t* memory, const hipExternalMemoryHandleDesc* shared), \
                                                                        (memory, shared), External(memory, shared)) \
  X(hipExternalMemoryGetMappedBuffer, hipExternalMemoryGetMappedBuffer, \
    (void** block, hipExternalMemory_t memory, const hipExternalMemoryBufferDesc* part), \
    (block, memory, part), Fallible{}) \
  X(hipDestroyExternalMemory,         hipDestroyExternalMemory,         (hipExternalMemory_t memory), (memory), DestroyedExternal(memory)) \
  /* graphs */ \
  X(hipGraphCreate,               hipGraphCreate,               (hipGraph_t* graph, unsigned int flags),   (graph, flags), Fallible{}) \
  X(hipGraphClone,                hipGraphClone,                (hipGraph_t* graph, hipGraph_t original), \
                                                                (graph, original), ClonedGraph(graph, original)) \
  X(hipGraphDestroy,              hipGraphDestroy,              (hipGraph_t graph),                        (graph),        DestroyedGraph{graph}) \
  X(hipGraphAddChildGraphNode,    hipGraphAddChildGraphNode, \
    (hipGraphNode_t* node, hipGraph_t graph, const hipGraphNode_t* after, size_t count, hipGraph_t child), \
    (node, graph, after, count, child), ChildGraph(graph, child)) \
  X(hipGraphInstantiate,          hipGraphInstantiate, \
    (hipGraphExec_t* exec, hipGraph_t graph, hipGraphNode_t* culprit, char* log, size_t size), \
    (exec, graph, culprit, log, size), Instantiated{exec, graph}) \
  X(hipGraphInstantiateWithFlags, hipGraphInstantiateWithFlags, (hipGraphExec_t* exec, hipGraph_t graph, unsigned long long flags), \
                                                                (exec, graph, flags), Instantiated{exec, graph}) \
  X(hipGraphLaunch,               hipGraphLaunch,               (hipGraphExec_t exec, hipStream_t stream), (exec, stream), Launched{exec}) \
  X(hipGraphExecDestroy,          hipGraphExecDestroy,          (hipGraphExec_t exec),                     (exec),         DestroyedExec{exec})

// Later functions, from their published declarations.
#define OOMREC_HIP_FUNCTIONS_LATER(X) \
  /* modules */ \
  X(hipModuleLoadFatBinary, hipModuleLoadFatBinary, (hipModule_t* module, const void* image), (module, image), Fallible{}) \
  X(hipLibraryLoadData,     hipLibraryLoadData, \
    (hipLibrary_t* library, const void* code, hipJitOption* jit, void** jit_values, unsigned int jit_count, hipLibraryOption* options, void** values, unsigned int count), \
    (library, code, jit, jit_values, jit_count, options, values, count), Fallible{}) \
  X(hipLibraryLoadFromFile, hipLibraryLoadFromFile, \
    (hipLibrary_t* library, const char* path, hipJitOption* jit, void** jit_values, unsigned int jit_count, hipLibraryOption* options, void** values, unsigned int count), \
    (library, path, jit, jit_values, jit_count, options, values, count), Fallible{}) \
  /* host memory: since 6.3 */ \
  X(hipExtHostAlloc, hipExtHostAlloc, (void** block, size_t bytes, unsigned int flags), (block, bytes, flags), HostBlock(block, bytes)) \
  /* pools: since 7.2 */ \
  X(hipMemGetDefaultMemPool, hipMemGetDefaultMemPool, (hipMemPool_t* pool, hipMemLocation* location, hipMemAllocationType type), \
                                                      (pool, location, type), DevicePool{pool, device_of(location)}) \
  X(hipMemGetMemPool,        hipMemGetMemPool,        (hipMemPool_t* pool, hipMemLocation* location, hipMemAllocationType type), \
                                                      (pool, location, type), DevicePool{pool, device_of(location)}) \
  X(hipMemSetMemPool,        hipMemSetMemPool,        (hipMemLocation* location, hipMemAllocationType type, hipMemPool_t pool), \
                                                      (location, type, pool), SelectedPool(device_of(location), pool)) \
  /* memory of other interfaces */ \
  X(hipExternalMemoryGetMappedMipmappedArray, hipExternalMemoryGetMappedMipmappedArray, \
    (hipMipmappedArray_t* array, hipExternalMemory_t memory, const hipExternalMemoryMipmappedArrayDesc* part), \
    (array, memory, part), Fallible{}) \
  /* graphs: memory nodes since 5.5 */ \
  X(hipGraphAddMemAllocNode,       hipGraphAddMemAllocNode, \
    (hipGraphNode_t* node, hipGraph_t graph, const hipGraphNode_t* after, size_t count, hipMemAllocNodeParams* params), \
    (node, graph, after, count, params), GraphBlock{graph, params}) \
  X(hipGraphAddMemFreeNode,        hipGraphAddMemFreeNode, \
    (hipGraphNode_t* node, hipGraph_t graph, const hipGraphNode_t* after, size_t count, void* block), \
    (node, graph, after, count, block), GraphFree{graph, block}) \
  X(hipDrvGraphAddMemFreeNode,     hipDrvGraphAddMemFreeNode, \
    (hipGraphNode_t* node, hipGraph_t graph, const hipGraphNode_t* after, size_t count, hipDeviceptr_t block), \
    (node, graph, after, count, block), GraphFree{graph, block}) \
  X(hipGraphAddNode,               hipGraphAddNode, \
    (hipGraphNode_t* node, hipGraph_t graph, const hipGraphNode_t* after, size_t count, hipGraphNodeParams* params), \
    (node, graph, after, count, params), GraphNode{graph, params}) \
  X(hipGraphInstantiateWithParams, hipGraphInstantiateWithParams, (hipGraphExec_t* exec, hipGraph_t graph, hipGraphInstantiateParams* params), \
                                                                  (exec, graph, params), Instantiated{exec, graph}) \
  X(hipGraphUpload,                hipGraphUpload,                (hipGraphExec_t exec, hipStream_t stream), (exec, stream), Fallible{}) \
  X(hipGraphLaunch_spt,            hipGraphLaunch,                (hipGraphExec_t exec, hipStream_t stream), (exec, stream), Launched{exec}) \
  X(hipDeviceGraphMemTrim,         hipDeviceGraphMemTrim,         (int device),                              (device),       GraphTrim(device)) \
  /* look-ups: since 6.1 */ \
  X(hipGetProcAddress,          hipGetProcAddress, \
    (const char* name, void** function, int version, uint64_t flags, hipDriverProcAddressQueryResult* status), \
    (name, function, version, flags, status), Resolver{name, function}) \
  X(hipGetProcAddress_spt,      hipGetProcAddress, \
    (const char* name, void** function, int version, uint64_t flags, hipDriverProcAddressQueryResult* status), \
    (name, function, version, flags, status), Resolver{name, function}) \
  X(hipGetDriverEntryPoint,     hipGetDriverEntryPoint, \
    (const char* name, void** function, unsigned long long flags, hipDriverEntryPointQueryResult* status), \
    (name, function, flags, status), Resolver{name, function}) \
  X(hipGetDriverEntryPoint_spt, hipGetDriverEntryPoint, \
    (const char* name, void** function, unsigned long long flags, hipDriverEntryPointQueryResult* status), \
    (name, function, flags, status), Resolver{name, function})

#define OOMREC_HIP_FUNCTIONS(X) OOMREC_HIP_FUNCTIONS_5_2(X) OOMREC_HIP_FUNCTIONS_LATER(X)

// Those that we call as queries: like the others, without an action.
#define OOMREC_HIP_QUERIES(X) \
  X(hipPeekAtLastError,                 ()) \
  X(hipGetLastError,                    ()) \
  X(hipMalloc,                          (void** block, size_t bytes)) \
  X(hipGetDevice,                       (int* device)) \
  X(hipStreamGetDevice,                 (hipStream_t stream, hipDevice_t* device)) \
  X(hipMemGetInfo,                      (size_t* free, size_t* total)) \
  X(hipDeviceGetUuid,                   (hipUUID* uuid, hipDevice_t device)) \
  X(hipDeviceGetName,                   (char* name, int size, hipDevice_t device)) \
  X(hipRuntimeGetVersion,               (int* version)) \
  X(hipStreamGetCaptureInfo_v2,         (hipStream_t stream, hipStreamCaptureStatus* status, unsigned long long* id, hipGraph_t* graph, const hipGraphNode_t** dependencies, size_t* count)) \
  X(hipThreadExchangeStreamCaptureMode, (hipStreamCaptureMode* mode)) \
  X(hipMemGetAddressRange,              (hipDeviceptr_t* base, size_t* bytes, hipDeviceptr_t address)) \
  X(hipDeviceGetMemPool,                (hipMemPool_t* pool, int device)) \
  X(hipMemPoolGetAttribute,             (hipMemPool_t pool, hipMemPoolAttr attribute, void* value))
// clang-format on

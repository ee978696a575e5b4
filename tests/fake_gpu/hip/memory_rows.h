// Memory of all kinds. Rows: tests/fake_gpu/core/front_end.h.
#pragma once

// clang-format off
#define FAKE_HIP_MEMORY_ROWS(X) \
  /* device and managed memory */ \
  X(hipMemGetInfo,         0, context, (size_t* free, size_t* total),                     memory_info(free, total)) \
  X(hipMalloc,             0, context, (void** block, size_t bytes),                      allocate_any(block, bytes)) \
  X(hipExtMallocWithFlags, 0, context, (void** block, size_t bytes, unsigned flags),      allocate_any(block, bytes)) \
  X(hipMallocManaged,      0, context, (void** block, size_t bytes, unsigned flags),      allocate_managed_memory(block, bytes)) \
  X(hipMallocPitch,        0, context, (void** block, size_t* pitch, size_t width, size_t rows), \
                                       allocate_pitch(address_out(block), pitch, width, rows)) \
  X(hipMemAllocPitch,      0, context, (hipDeviceptr_t* block, size_t* pitch, size_t width, size_t rows, unsigned element), \
                                       allocate_pitch(address_out(block), pitch, width, rows)) \
  X(hipMalloc3D,           0, context, (hipPitchedPtr* block, hipExtent extent),          allocate_3d(block, extent)) \
  X(hipFree,               0, context, (void* block),                                     free_either(block)) \
  X(hipMemGetAddressRange, 0, context, (hipDeviceptr_t* base, size_t* bytes, hipDeviceptr_t block), \
                                       address_range(base == nullptr ? nullptr : address_out(base), bytes, address_of(block))) \
  X(hipMemPtrGetInfo,      0, context, (void* block, size_t* bytes),                      address_range(nullptr, bytes, address_of(block))) \
  X(hipPointerGetAttribute,  0, context, (void* data, int attribute, hipDeviceptr_t pointer), pointer_attribute(data, attribute, address_of(pointer))) \
  X(hipPointerGetAttributes, 0, context, (void* attributes, const void* pointer),         pointer_facts(attributes, pointer)) \
  /* host memory */ \
  X(hipMallocHost,     0, context, (void** block, size_t bytes),                 allocate_host_memory(block, bytes, 0)) \
  X(hipMemAllocHost,   0, context, (void** block, size_t bytes),                 allocate_host_memory(block, bytes, 0)) \
  X(hipHostMalloc,     0, context, (void** block, size_t bytes, unsigned flags), allocate_host_memory(block, bytes, flags)) \
  X(hipHostAlloc,      0, context, (void** block, size_t bytes, unsigned flags), allocate_host_memory(block, bytes, flags)) \
  X(hipExtHostAlloc,   0, context, (void** block, size_t bytes, unsigned flags), allocate_host_memory(block, bytes, flags)) \
  X(hipFreeHost,       0, context, (void* block),                                free_either(block)) \
  X(hipHostFree,       0, context, (void* block),                                free_either(block)) \
  X(hipHostRegister,   0, context, (void* address, size_t bytes, unsigned flags), register_host(address, bytes, flags)) \
  X(hipHostUnregister, 0, context, (void* address),                              unregister_host(address)) \
  X(hipHostGetDevicePointer, 0, context, (void** out, void* address, unsigned flags), host_device_pointer(address_out(out), address)) \
  X(hipHostGetFlags,   0, context, (unsigned* flags, void* address),             host_flags(flags, address)) \
  /* stream-ordered memory and pools */ \
  X(hipMallocAsync,         0, context, (void** block, size_t bytes, hipStream_t stream), allocate_ordered(address_out(block), bytes, nullptr, stream)) \
  X(hipMallocFromPoolAsync, 0, context, (void** block, size_t bytes, hipMemPool_t pool, hipStream_t stream), \
                                        pool == nullptr ? invalid_value : allocate_ordered(address_out(block), bytes, pool, stream)) \
  X(hipFreeAsync,           0, context, (void* block, hipStream_t stream),                free_ordered(address_of(block), stream)) \
  X(hipMemPoolCreate,       0, init,    (hipMemPool_t* out, const hipMemPoolProps* props), pool_of(out, props)) \
  X(hipMemPoolDestroy,      0, init,    (hipMemPool_t pool),                              destroy_pool(pool)) \
  X(hipMemPoolTrimTo,       0, init,    (hipMemPool_t pool, size_t keep),                 trim_pool(pool, keep)) \
  X(hipMemPoolGetAttribute, 0, init,    (hipMemPool_t pool, int attribute, void* value),  get_pool_attribute(pool, attribute, value)) \
  X(hipMemPoolSetAttribute, 0, init,    (hipMemPool_t pool, int attribute, void* value),  set_pool_attribute(pool, attribute, value)) \
  X(hipMemPoolExportToShareableHandle,   0, init, (void* out, hipMemPool_t pool, hipMemAllocationHandleType type, unsigned flags), export_pool(out, pool)) \
  X(hipMemPoolImportFromShareableHandle, 0, init, (hipMemPool_t* out, void* shared, hipMemAllocationHandleType type, unsigned flags), \
                                        import_pool(handle_out(out), shared)) \
  X(hipMemPoolExportPointer, 0, init,   (hipMemPoolPtrExportData* out, void* block),      export_pointer(out, address_of(block))) \
  X(hipMemPoolImportPointer, 0, context, (void** block, hipMemPool_t pool, hipMemPoolPtrExportData* shared), \
                                        import_pointer(address_out(block), pool, shared)) \
  X(hipDeviceGetDefaultMemPool, 0, init, (hipMemPool_t* out, int device),                 pool_of_device(out, device, default_pool)) \
  X(hipDeviceGetMemPool,    0, init,    (hipMemPool_t* out, int device),                  pool_of_device(out, device, device_pool)) \
  X(hipDeviceSetMemPool,    0, init,    (int device, hipMemPool_t pool),                  set_device_pool(device, pool)) \
  X(hipMemGetDefaultMemPool, 0, init,   (hipMemPool_t* out, hipMemLocation* location, hipMemAllocationType type), \
                                        default_pool(handle_out(out), device_of(location))) \
  X(hipMemGetMemPool,       0, init,    (hipMemPool_t* out, hipMemLocation* location, hipMemAllocationType type), \
                                        device_pool(handle_out(out), device_of(location))) \
  X(hipMemSetMemPool,       0, init,    (hipMemLocation* location, hipMemAllocationType type, hipMemPool_t pool), \
                                        set_device_pool(device_of(location), pool)) \
  /* virtual memory */ \
  X(hipMemGetAllocationGranularity, 0, init, (size_t* bytes, const hipMemAllocationProp* props, int option), put(bytes, kGranularity)) \
  X(hipMemCreate,          0, init, (hipMemGenericAllocationHandle_t* out, size_t bytes, const hipMemAllocationProp* props, unsigned long long flags), \
                                    handle_of(out, bytes, props)) \
  X(hipMemRelease,         0, init, (hipMemGenericAllocationHandle_t handle),             release_handle(handle)) \
  X(hipMemRetainAllocationHandle, 0, init, (hipMemGenericAllocationHandle_t* out, void* address), retain_handle(core_handle(out), address_of(address))) \
  X(hipMemExportToShareableHandle, 0, init, (void* out, hipMemGenericAllocationHandle_t handle, hipMemAllocationHandleType type, unsigned long long flags), \
                                    export_handle(out, handle)) \
  X(hipMemImportFromShareableHandle, 0, init, (hipMemGenericAllocationHandle_t* out, void* shared, hipMemAllocationHandleType type), \
                                    import_handle(core_handle(out), shared)) \
  X(hipMemAddressReserve,  0, init, (void** out, size_t bytes, size_t alignment, void* wanted, unsigned long long flags), reserve(address_out(out), bytes)) \
  X(hipMemAddressFree,     0, init, (void* address, size_t bytes),                        end_reservation(address_of(address), bytes)) \
  X(hipMemMap,             0, init, (void* address, size_t bytes, size_t offset, hipMemGenericAllocationHandle_t handle, unsigned long long flags), \
                                    map(address_of(address), bytes, offset, handle)) \
  X(hipMemUnmap,           0, init, (void* address, size_t bytes),                        unmap(address_of(address), bytes)) \
  X(hipMemSetAccess,       0, init, (void* address, size_t bytes, const void* access, size_t count), set_access(address_of(address), bytes)) \
  /* arrays */ \
  X(hipMallocArray,        0, context, (hipArray_t* out, const hipChannelFormatDesc* element, size_t width, size_t height, unsigned flags), \
                                       create_array(handle_out(out), bytes_of(element, {width, height, 0}, flags), shape_of({width, height, 0}, flags))) \
  X(hipMalloc3DArray,      0, context, (hipArray_t* out, const hipChannelFormatDesc* element, hipExtent extent, unsigned flags), \
                                       create_array(handle_out(out), bytes_of(element, extent, flags), shape_of(extent, flags))) \
  X(hipArrayCreate,        0, context, (hipArray_t* out, const HIP_ARRAY_DESCRIPTOR* shape),   create_array(handle_out(out), bytes_of(shape), shape_of(shape))) \
  X(hipArray3DCreate,      0, context, (hipArray_t* out, const HIP_ARRAY3D_DESCRIPTOR* shape), create_array(handle_out(out), bytes_of(shape), shape_of(shape))) \
  X(hipFreeArray,          0, context, (hipArray_t array),                                destroy_array(array)) \
  X(hipArrayDestroy,       0, context, (hipArray_t array),                                destroy_array(array)) \
  X(hipMallocMipmappedArray, 0, context, (hipMipmappedArray_t* out, const hipChannelFormatDesc* element, hipExtent extent, unsigned levels, unsigned flags), \
                                       create_mipmapped(handle_out(out), bytes_of(element, extent, flags, levels), shape_of(extent, flags), levels)) \
  X(hipMipmappedArrayCreate, 0, context, (hipMipmappedArray_t* out, HIP_ARRAY3D_DESCRIPTOR* shape, unsigned levels), \
                                       create_mipmapped(handle_out(out), bytes_of(shape, levels), shape_of(shape), levels)) \
  X(hipGetMipmappedArrayLevel, 0, context, (hipArray_t* out, hipMipmappedArray_t array, unsigned level), array_level(handle_out(out), array, level)) \
  X(hipFreeMipmappedArray, 0, context, (hipMipmappedArray_t array),                       destroy_mipmapped(array)) \
  X(hipMipmappedArrayDestroy, 0, context, (hipMipmappedArray_t array),                    destroy_mipmapped(array)) \
  /* memory of other processes and interfaces */ \
  X(hipIpcGetMemHandle,    0, context, (hipIpcMemHandle_t* out, void* block),             ipc_handle(out, address_of(block))) \
  X(hipIpcOpenMemHandle,   0, context, (void** out, hipIpcMemHandle_t shared, unsigned flags), open_ipc(address_out(out), &shared)) \
  X(hipIpcCloseMemHandle,  0, context, (void* block),                                     close_ipc(address_of(block))) \
  X(hipImportExternalMemory, 0, context, (hipExternalMemory_t* out, const hipExternalMemoryHandleDesc* shared), \
                                       shared == nullptr ? invalid_value : import_external(out, shared->size)) \
  X(hipExternalMemoryGetMappedBuffer, 0, context, (void** out, hipExternalMemory_t memory, const hipExternalMemoryBufferDesc* part), \
                                       part == nullptr ? invalid_value : external_buffer(address_out(out), memory, part->offset, part->size)) \
  X(hipExternalMemoryGetMappedMipmappedArray, 0, context, (hipMipmappedArray_t* out, hipExternalMemory_t memory, const hipExternalMemoryMipmappedArrayDesc* part), \
                                       is_external(memory) ? not_supported : invalid_handle) \
  X(hipDestroyExternalMemory, 0, context, (hipExternalMemory_t memory),                   destroy_external(memory)) \
  /* copies: done at once */ \
  X(hipMemcpy,             0, context, (void* to, const void* from, size_t bytes, int kind), copy(to, from, bytes)) \
  X(hipMemcpyAsync,        0, context, (void* to, const void* from, size_t bytes, int kind, hipStream_t stream), copy(to, from, bytes)) \
  X(hipMemcpyHtoD,         0, context, (hipDeviceptr_t to, void* from, size_t bytes),     copy(to, from, bytes)) \
  X(hipMemcpyDtoH,         0, context, (void* to, hipDeviceptr_t from, size_t bytes),     copy(to, from, bytes)) \
  X(hipMemcpyDtoD,         0, context, (hipDeviceptr_t to, hipDeviceptr_t from, size_t bytes), copy(to, from, bytes)) \
  X(hipMemcpyHtoDAsync,    0, context, (hipDeviceptr_t to, void* from, size_t bytes, hipStream_t stream), copy(to, from, bytes)) \
  X(hipMemcpyDtoHAsync,    0, context, (void* to, hipDeviceptr_t from, size_t bytes, hipStream_t stream), copy(to, from, bytes)) \
  X(hipMemset,             0, context, (void* to, int value, size_t bytes),               fill(to, static_cast<unsigned char>(value), bytes)) \
  X(hipMemsetAsync,        0, context, (void* to, int value, size_t bytes, hipStream_t stream), fill(to, static_cast<unsigned char>(value), bytes)) \
  X(hipMemsetD8,           0, context, (hipDeviceptr_t to, unsigned char value, size_t count),  fill(to, value, count)) \
  X(hipMemsetD16,          0, context, (hipDeviceptr_t to, unsigned short value, size_t count), fill(to, value, count)) \
  X(hipMemsetD32,          0, context, (hipDeviceptr_t to, int value, size_t count),      fill(to, value, count))
// clang-format on

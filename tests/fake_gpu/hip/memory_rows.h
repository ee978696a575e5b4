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
  X(hipIpcCloseMemHandle,  0, context, (void* block),                                     close_ipc(address_of(block))) \
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

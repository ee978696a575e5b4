// Memory of all kinds. Rows: tests/fake_gpu/core/front_end.h; FAKE_CUDA_PTSZ and _PTDS
// give both names of a function that has a form for the per-thread default stream.
#pragma once

// clang-format off
#define FAKE_CUDA_MEMORY_ROWS(X) \
  /* device and managed memory; v1: addresses of 32 bits */ \
  X(cuMemGetInfo,         2000,  context, (unsigned* free, unsigned* total),                 narrow_memory_info(free, total)) \
  X(cuMemGetInfo_v2,      3020,  context, (size_t* free, size_t* total),                     memory_info(free, total)) \
  X(cuMemAlloc,           2000,  context, (CUdeviceptr_v1* block, unsigned bytes),           allocate_low(block, bytes)) \
  X(cuMemAlloc_v2,        3020,  context, (CUdeviceptr* block, size_t bytes),                allocate(block, bytes)) \
  X(cuMemAllocPitch,      2000,  context, (CUdeviceptr_v1* block, unsigned* pitch, unsigned width, unsigned rows, unsigned element), \
                                          allocate_low_pitch(block, pitch, width, rows)) \
  X(cuMemAllocPitch_v2,   3020,  context, (CUdeviceptr* block, size_t* pitch, size_t width, size_t rows, unsigned element), \
                                          allocate_pitch(block, pitch, width, rows)) \
  X(cuMemAllocManaged,    6000,  context, (CUdeviceptr* block, size_t bytes, unsigned flags), allocate_managed_memory(block, bytes)) \
  X(cuMemFree,            2000,  init,    (CUdeviceptr_v1 block),                            free_block(block)) \
  X(cuMemFree_v2,         3020,  init,    (CUdeviceptr block),                               free_block(block)) \
  X(cuMemGetAddressRange, 2000,  context, (CUdeviceptr_v1* base, unsigned* bytes, CUdeviceptr_v1 block), \
                                          narrow_address_range(base, bytes, block)) \
  X(cuMemGetAddressRange_v2, 3020, context, (CUdeviceptr* base, size_t* bytes, CUdeviceptr block), address_range(base, bytes, block)) \
  X(cuPointerGetAttribute,  4000, init,   (void* data, int attribute, CUdeviceptr pointer),  pointer_attribute(data, attribute, pointer)) \
  X(cuPointerGetAttributes, 7000, init,   (unsigned count, int* attributes, void** data, CUdeviceptr pointer), \
                                          pointer_attributes(count, attributes, data, pointer)) \
  /* host memory */ \
  X(cuMemAllocHost,       2000,  context, (void** block, unsigned bytes),                    allocate_host(block, bytes, 0)) \
  X(cuMemAllocHost_v2,    3020,  context, (void** block, size_t bytes),                      allocate_host(block, bytes, 0)) \
  X(cuMemHostAlloc,       2020,  context, (void** block, size_t bytes, unsigned flags),      allocate_host(block, bytes, flags)) \
  X(cuMemFreeHost,        2000,  init,    (void* block),                                     free_host(block)) \
  X(cuMemHostRegister,    4000,  context, (void* address, size_t bytes, unsigned flags),     register_host(address, bytes, flags)) \
  X(cuMemHostRegister_v2, 6050,  context, (void* address, size_t bytes, unsigned flags),     register_host(address, bytes, flags)) \
  X(cuMemHostUnregister,  4000,  context, (void* address),                                   unregister_host(address)) \
  X(cuMemHostGetDevicePointer,    2020, context, (CUdeviceptr_v1* out, void* address, unsigned flags), \
                                          narrow(out, [=](CUdeviceptr* wide) { return host_device_pointer(wide, address); })) \
  X(cuMemHostGetDevicePointer_v2, 3020, context, (CUdeviceptr* out, void* address, unsigned flags), host_device_pointer(out, address)) \
  X(cuMemHostGetFlags,    2030,  context, (unsigned* flags, void* address),                  host_flags(flags, address)) \
  /* stream-ordered memory and pools */ \
  FAKE_CUDA_PTSZ(X, cuMemAllocAsync,         11020, context, (CUdeviceptr* block, size_t bytes, CUstream stream), allocate_ordered(block, bytes, nullptr, stream)) \
  FAKE_CUDA_PTSZ(X, cuMemAllocFromPoolAsync, 11020, context, (CUdeviceptr* block, size_t bytes, CUmemoryPool pool, CUstream stream), \
                                          pool == nullptr ? invalid_value : allocate_ordered(block, bytes, pool, stream)) \
  FAKE_CUDA_PTSZ(X, cuMemFreeAsync,       11020, context, (CUdeviceptr block, CUstream stream),              free_ordered(block, stream)) \
  X(cuMemPoolSetAccess,   11020, init,    (CUmemoryPool pool, const void* access, size_t count), find_pool(pool) != nullptr ? success : invalid_value) \
  X(cuMemPoolGetAccess,   11020, init,    (int* access, CUmemoryPool pool, CUmemLocation* location), put(access, kReadWrite)) \
  /* virtual memory and multicast */ \
  X(cuMemGetAllocationPropertiesFromHandle, 10020, init, (CUmemAllocationProp* out, CUmemGenericAllocationHandle handle), \
                                          handle_properties(out, handle)) \
  X(cuMemGetAccess,       10020, init,    (unsigned long long* access, const CUmemLocation* location, CUdeviceptr address), put(access, kReadWrite)) \
  FAKE_CUDA_PTSZ(X, cuMemMapArrayAsync,   11010, context, (CUarrayMapInfo* changes, unsigned count, CUstream stream), map_arrays(changes, count)) \
  X(cuMulticastCreate,    12010, init,    (CUmemGenericAllocationHandle* out, const CUmulticastObjectProp* props), \
                                          props == nullptr ? invalid_value : create_multicast(core_handle(out), props->size)) \
  X(cuMulticastAddDevice, 12010, init,    (CUmemGenericAllocationHandle multicast, CUdevice device), \
                                          is_device(device) ? unbind(pointer_of(multicast), 0, 0) : invalid_device) \
  X(cuMulticastBindMem,   12010, init,    (CUmemGenericAllocationHandle multicast, size_t offset, CUmemGenericAllocationHandle handle, size_t from, size_t bytes, unsigned long long flags), \
                                          bind(pointer_of(multicast), offset, bytes, find_handle(pointer_of(handle)))) \
  X(cuMulticastBindMem_v2, 13010, init,   (CUmemGenericAllocationHandle multicast, CUdevice device, size_t offset, CUmemGenericAllocationHandle handle, size_t from, size_t bytes, unsigned long long flags), \
                                          bind(pointer_of(multicast), offset, bytes, find_handle(pointer_of(handle)))) \
  X(cuMulticastBindAddr,  12010, init,    (CUmemGenericAllocationHandle multicast, size_t offset, CUdeviceptr address, size_t bytes, unsigned long long flags), \
                                          bind(pointer_of(multicast), offset, bytes, mapped_handle(address))) \
  X(cuMulticastBindAddr_v2, 13010, init,  (CUmemGenericAllocationHandle multicast, CUdevice device, size_t offset, CUdeviceptr address, size_t bytes, unsigned long long flags), \
                                          bind(pointer_of(multicast), offset, bytes, mapped_handle(address))) \
  X(cuMulticastUnbind,    12010, init,    (CUmemGenericAllocationHandle multicast, CUdevice device, size_t offset, size_t bytes), \
                                          unbind(pointer_of(multicast), offset, bytes)) \
  X(cuMulticastGetGranularity, 12010, init, (size_t* bytes, const CUmulticastObjectProp* props, int option), put(bytes, kGranularity)) \
  /* arrays */ \
  X(cuArrayCreate,        2000,  context, (CUarray* out, const CUDA_ARRAY_DESCRIPTOR_v1* shape),   create_array(handle_out(out), bytes_of(shape), shape_of(shape))) \
  X(cuArrayCreate_v2,     3020,  context, (CUarray* out, const CUDA_ARRAY_DESCRIPTOR* shape),      create_array(handle_out(out), bytes_of(shape), shape_of(shape))) \
  X(cuArray3DCreate,      2000,  context, (CUarray* out, const CUDA_ARRAY3D_DESCRIPTOR_v1* shape), create_array(handle_out(out), bytes_of(shape), shape_of(shape))) \
  X(cuArray3DCreate_v2,   3020,  context, (CUarray* out, const CUDA_ARRAY3D_DESCRIPTOR* shape),    create_array(handle_out(out), bytes_of(shape), shape_of(shape))) \
  X(cuArrayGetDescriptor_v2,   3020, init, (CUDA_ARRAY_DESCRIPTOR* out, CUarray array),            get_shape(out, array)) \
  X(cuArray3DGetDescriptor_v2, 3020, init, (CUDA_ARRAY3D_DESCRIPTOR* out, CUarray array),          get_shape(out, array)) \
  X(cuArrayDestroy,       2000,  init,    (CUarray array),                                   destroy_array(array)) \
  X(cuMipmappedArrayCreate, 5000, context, (CUmipmappedArray* out, const CUDA_ARRAY3D_DESCRIPTOR* shape, unsigned levels), \
                                          create_mipmapped(handle_out(out), bytes_of(shape, levels), shape_of(shape), levels)) \
  X(cuMipmappedArrayGetLevel, 5000, init, (CUarray* out, CUmipmappedArray array, unsigned level), array_level(handle_out(out), array, level)) \
  X(cuMipmappedArrayDestroy, 5000, init,  (CUmipmappedArray array),                          destroy_mipmapped(array)) \
  /* memory of other processes and interfaces */ \
  X(cuIpcOpenMemHandle_v2, 11000, context, (CUdeviceptr* out, CUipcMemHandle shared, unsigned flags), open_ipc(out, &shared)) \
  X(cuIpcCloseMemHandle,  4010,  init,    (CUdeviceptr block),                               close_ipc(block)) \
  X(cuExternalMemoryGetMappedMipmappedArray, 10000, context, (CUmipmappedArray* out, CUexternalMemory memory, const CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC* part), \
                                          external_mipmapped(out, memory, part)) \
  X(cuDestroyExternalMemory, 10000, init, (CUexternalMemory memory),                         destroy_external(memory)) \
  /* copies: done at once */ \
  FAKE_CUDA_PTDS(X, cuMemcpy,             4000,  context, (CUdeviceptr to, CUdeviceptr from, size_t bytes),  copy(to, from, bytes)) \
  FAKE_CUDA_PTDS(X, cuMemcpyHtoD_v2,      3020,  context, (CUdeviceptr to, const void* from, size_t bytes),  copy(to, from, bytes)) \
  FAKE_CUDA_PTDS(X, cuMemcpyDtoH_v2,      3020,  context, (void* to, CUdeviceptr from, size_t bytes),        copy(to, from, bytes)) \
  FAKE_CUDA_PTDS(X, cuMemcpyDtoD_v2,      3020,  context, (CUdeviceptr to, CUdeviceptr from, size_t bytes),  copy(to, from, bytes)) \
  FAKE_CUDA_PTSZ(X, cuMemcpyAsync,        4000,  context, (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream), copy(to, from, bytes)) \
  FAKE_CUDA_PTSZ(X, cuMemcpyHtoDAsync_v2, 3020,  context, (CUdeviceptr to, const void* from, size_t bytes, CUstream stream), copy(to, from, bytes)) \
  FAKE_CUDA_PTSZ(X, cuMemcpyDtoHAsync_v2, 3020,  context, (void* to, CUdeviceptr from, size_t bytes, CUstream stream),       copy(to, from, bytes)) \
  FAKE_CUDA_PTSZ(X, cuMemcpyDtoDAsync_v2, 3020,  context, (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream), copy(to, from, bytes)) \
  FAKE_CUDA_PTDS(X, cuMemsetD8_v2,        3020,  context, (CUdeviceptr to, unsigned char value, size_t count),  fill(to, value, count)) \
  FAKE_CUDA_PTDS(X, cuMemsetD16_v2,       3020,  context, (CUdeviceptr to, unsigned short value, size_t count), fill(to, value, count)) \
  FAKE_CUDA_PTDS(X, cuMemsetD32_v2,       3020,  context, (CUdeviceptr to, unsigned value, size_t count),       fill(to, value, count)) \
  FAKE_CUDA_PTSZ(X, cuMemsetD8Async,      3020,  context, (CUdeviceptr to, unsigned char value, size_t count, CUstream stream),  fill(to, value, count)) \
  FAKE_CUDA_PTSZ(X, cuMemsetD16Async,     3020,  context, (CUdeviceptr to, unsigned short value, size_t count, CUstream stream), fill(to, value, count)) \
  FAKE_CUDA_PTSZ(X, cuMemsetD32Async,     3020,  context, (CUdeviceptr to, unsigned value, size_t count, CUstream stream),       fill(to, value, count))
// clang-format on

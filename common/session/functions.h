// The functions that the recorder observes: a row each, with what the rest of oomrec must know.
//
// Recordings contain the numbers of the rows: append, never renumber. How a function is hooked is
// in shim/ (heap_functions.h, interpose/next_functions.h, gpu/).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "common/session/vocabulary.h"

namespace oomrec {

// What a function returns when it fails.
enum class Failed : std::uint8_t {
  nothing,            // it does not fail, or not for lack of memory
  null_pointer,       // instead of a pointer
  minus_one_pointer,  // −1 instead of a pointer: MAP_FAILED
  minus_one_number,   // −1 instead of a positive number
  minus_one,          // −1 instead of 0
  error_number,       // instead of 0
};

using Traits = std::uint16_t;
inline constexpr Traits kFails = 1 << 0;       // the recorder reports its failures
inline constexpr Traits kAllocates = 1 << 1;   // a C function that may return new memory
inline constexpr Traits kFrees = 1 << 2;       // a C function that gives memory back
inline constexpr Traits kResizes = 1 << 3;     // frees a block and allocates another one
inline constexpr Traits kInjectable = 1 << 4;  // --fail may fail it
inline constexpr Traits kStartsThread = 1 << 5;
inline constexpr Traits kStartsProcess = 1 << 6;
inline constexpr Traits kLocks = 1 << 7;   // in memory what is mapped already
inline constexpr Traits kLoads = 1 << 8;   // a library, whose size only the loader knows
inline constexpr Traits kOnHost = 1 << 9;  // of a driver: the host can access what it allocates
inline constexpr Traits kRequest = kFails | kInjectable;
inline constexpr Traits kAllocator = kRequest | kAllocates;

// Functions that copy a text, such as strdup, mostly call malloc. Only an allocator's own are
// observed.
// clang-format off
//  name as the program calls it  space   if it fails        traits
#define OOMREC_APIS(X) \
  X(none,                        heap,   nothing,           0) \
  X(malloc,                      heap,   null_pointer,      kAllocator) \
  X(calloc,                      heap,   null_pointer,      kAllocator) \
  X(realloc,                     heap,   null_pointer,      kAllocator | kResizes) \
  X(reallocarray,                heap,   null_pointer,      kAllocator | kResizes) \
  X(free,                        heap,   nothing,           kFrees) \
  X(memalign,                    heap,   null_pointer,      kAllocator) \
  X(aligned_alloc,               heap,   null_pointer,      kAllocator) \
  X(posix_memalign,              heap,   error_number,      kAllocator) \
  X(valloc,                      heap,   null_pointer,      kAllocator) \
  X(pvalloc,                     heap,   null_pointer,      kAllocator) \
  X(operator_new,                heap,   null_pointer,      kRequest) \
  X(operator_delete,             heap,   nothing,           0) \
  X(mmap,                        map,    minus_one_pointer, kAllocator) \
  X(munmap,                      map,    minus_one,         kFrees) \
  X(mremap,                      map,    minus_one_pointer, kAllocator) \
  X(mprotect,                    map,    minus_one,         kRequest) \
  X(brk,                         map,    minus_one,         kAllocator) \
  X(sbrk,                        map,    minus_one_pointer, kAllocator) \
  X(shmat,                       map,    minus_one_pointer, kAllocator) \
  X(shmdt,                       map,    minus_one,         kFrees) \
  X(fork,                        heap,   minus_one_number,  kRequest | kStartsProcess) \
  X(pthread_create,              heap,   error_number,      kRequest | kStartsThread) \
  X(dlopen,                      heap,   null_pointer,      kFails | kLoads) \
  X(posix_spawn,                 heap,   error_number,      kFails | kStartsProcess) \
  X(inherited,                   heap,   nothing,           0) \
  X(request,                     heap,   nothing,           0) \
  X(reportMemoryUsageToProfiler, torch,  nothing,           0) \
  X(reportOutOfMemoryToProfiler, torch,  nothing,           kFails) \
  X(oomrec_mark,                 heap,   nothing,           0) \
  X(mlock,                       map,    minus_one,         kFails | kLocks) \
  X(mlockall,                    map,    minus_one,         kFails | kLocks) \
  X(PyMem_Malloc,                python, null_pointer,      0) \
  X(PyMem_Calloc,                python, null_pointer,      0) \
  X(PyMem_Realloc,               python, null_pointer,      0) \
  X(PyMem_Free,                  python, nothing,           0) \
  X(PyObject_Malloc,             python, null_pointer,      0) \
  X(PyObject_Calloc,             python, null_pointer,      0) \
  X(PyObject_Realloc,            python, null_pointer,      0) \
  X(PyObject_Free,               python, nothing,           0) \
  X(free_sized,                  heap,   nothing,           kFrees) \
  X(free_aligned_sized,          heap,   nothing,           kFrees) \
  X(strdup,                      heap,   null_pointer,      kFails) \
  X(strndup,                     heap,   null_pointer,      kFails) \
  X(realpath,                    heap,   null_pointer,      kFails) \
  X(dallocx,                     heap,   nothing,           kFrees) \
  X(sdallocx,                    heap,   nothing,           kFrees) \
  X(mallocx,                     heap,   null_pointer,      kAllocator)

// Functions of GPU drivers (shim/gpu/), without version suffixes: cuMemAlloc_v2 is cuMemAlloc. They
// return an error number; --fail may fail those that can fail for lack of memory.
#define OOMREC_CUDA_APIS(X) \
  X(cuCtxCreate, kRequest) X(cuCtxDestroy, 0) X(cuDevicePrimaryCtxRetain, kRequest) \
  X(cuDevicePrimaryCtxRelease, 0) X(cuDevicePrimaryCtxReset, 0) X(cuGreenCtxCreate, kRequest) \
  X(cuModuleLoad, kRequest) X(cuModuleLoadData, kRequest) X(cuModuleLoadDataEx, kRequest) \
  X(cuModuleLoadFatBinary, kRequest) X(cuModuleGetFunction, kRequest) X(cuLibraryLoadData, kRequest) \
  X(cuLibraryLoadFromFile, kRequest) X(cuLibraryGetModule, kRequest) X(cuKernelGetFunction, kRequest) \
  X(cuStreamCreate, kRequest) X(cuStreamCreateWithPriority, kRequest) X(cuEventCreate, kRequest) \
  X(cuGreenCtxStreamCreate, kRequest) X(cuMemAlloc, kRequest) X(cuMemAllocPitch, kRequest) \
  X(cuMemAllocManaged, kRequest | kOnHost) X(cuMemFree, 0) X(cuMemAllocHost, kRequest) \
  X(cuMemHostAlloc, kRequest) X(cuMemFreeHost, 0) X(cuMemHostRegister, kRequest) \
  X(cuMemHostUnregister, 0) X(cuMemAllocAsync, kRequest) X(cuMemAllocFromPoolAsync, kRequest) \
  X(cuMemFreeAsync, 0) X(cuMemPoolCreate, kRequest) X(cuMemPoolImportFromShareableHandle, kRequest) \
  X(cuMemPoolImportPointer, kRequest) X(cuMemPoolTrimTo, 0) X(cuMemPoolDestroy, 0) \
  X(cuDeviceGetDefaultMemPool, 0) X(cuDeviceGetMemPool, 0) X(cuDeviceSetMemPool, 0) \
  X(cuMemGetDefaultMemPool, 0) X(cuMemGetMemPool, 0) X(cuMemSetMemPool, 0) X(cuMemCreate, kRequest) \
  X(cuMemImportFromShareableHandle, kRequest) X(cuMemRetainAllocationHandle, kRequest) \
  X(cuMemRelease, 0) X(cuMemAddressReserve, kRequest) X(cuMemAddressFree, 0) X(cuMemMap, kRequest) \
  X(cuMemUnmap, 0) X(cuMemMapArrayAsync, kRequest) X(cuMulticastCreate, kRequest) \
  X(cuMulticastBindMem, kRequest) X(cuMulticastBindAddr, kRequest) X(cuMulticastUnbind, 0) \
  X(cuArrayCreate, kRequest) X(cuArray3DCreate, kRequest) X(cuArrayDestroy, 0) \
  X(cuMipmappedArrayCreate, kRequest) X(cuMipmappedArrayDestroy, 0) X(cuIpcOpenMemHandle, kRequest) \
  X(cuIpcCloseMemHandle, 0) X(cuImportExternalMemory, kRequest) \
  X(cuExternalMemoryGetMappedBuffer, kRequest) X(cuExternalMemoryGetMappedMipmappedArray, kRequest) \
  X(cuDestroyExternalMemory, 0) X(cuGraphCreate, kRequest) X(cuGraphClone, kRequest) \
  X(cuGraphDestroy, 0) X(cuGraphAddMemAllocNode, kRequest) X(cuGraphAddMemFreeNode, 0) \
  X(cuGraphAddChildGraphNode, kRequest) X(cuGraphInstantiate, kRequest) \
  X(cuGraphInstantiateWithFlags, kRequest) X(cuGraphUpload, kRequest) X(cuGraphLaunch, kRequest) \
  X(cuGraphExecDestroy, 0) X(cuDeviceGraphMemTrim, 0) X(cuGraphAddNode, kRequest) \
  X(cuGraphInstantiateWithParams, kRequest) X(cuGetProcAddress, 0)

#define OOMREC_HIP_APIS(X) \
  X(hipCtxCreate, kRequest) X(hipDeviceReset, 0) X(hipModuleLoad, kRequest) \
  X(hipModuleLoadData, kRequest) X(hipModuleLoadDataEx, kRequest) X(hipModuleLoadFatBinary, kRequest) \
  X(hipLibraryLoadData, kRequest) X(hipLibraryLoadFromFile, kRequest) X(hipStreamCreate, kRequest) \
  X(hipStreamCreateWithFlags, kRequest) X(hipStreamCreateWithPriority, kRequest) \
  X(hipExtStreamCreateWithCUMask, kRequest) X(hipEventCreate, kRequest) \
  X(hipEventCreateWithFlags, kRequest) X(hipMalloc, kRequest) X(hipExtMallocWithFlags, kRequest) \
  X(hipMallocPitch, kRequest) X(hipMemAllocPitch, kRequest) X(hipMalloc3D, kRequest) \
  X(hipMallocManaged, kRequest | kOnHost) X(hipFree, 0) X(hipMallocHost, kRequest) \
  X(hipMemAllocHost, kRequest) X(hipHostMalloc, kRequest) X(hipHostAlloc, kRequest) X(hipFreeHost, 0) \
  X(hipHostFree, 0) X(hipHostRegister, kRequest) X(hipHostUnregister, 0) X(hipExtHostAlloc, kRequest) \
  X(hipMallocAsync, kRequest) X(hipMallocFromPoolAsync, kRequest) X(hipFreeAsync, 0) \
  X(hipMemPoolCreate, kRequest) X(hipMemPoolImportFromShareableHandle, kRequest) \
  X(hipMemPoolImportPointer, kRequest) X(hipMemPoolTrimTo, 0) X(hipMemPoolDestroy, 0) \
  X(hipDeviceGetDefaultMemPool, 0) X(hipDeviceGetMemPool, 0) X(hipDeviceSetMemPool, 0) \
  X(hipMemGetDefaultMemPool, 0) X(hipMemGetMemPool, 0) X(hipMemSetMemPool, 0) \
  X(hipMemCreate, kRequest) X(hipMemImportFromShareableHandle, kRequest) \
  X(hipMemRetainAllocationHandle, kRequest) X(hipMemRelease, 0) X(hipMemAddressReserve, kRequest) \
  X(hipMemAddressFree, 0) X(hipMemMap, kRequest) X(hipMemUnmap, 0) X(hipMallocArray, kRequest) \
  X(hipMalloc3DArray, kRequest) X(hipArrayCreate, kRequest) X(hipArray3DCreate, kRequest) \
  X(hipFreeArray, 0) X(hipArrayDestroy, 0) X(hipMallocMipmappedArray, kRequest) \
  X(hipMipmappedArrayCreate, kRequest) X(hipFreeMipmappedArray, 0) X(hipMipmappedArrayDestroy, 0) \
  X(hipIpcOpenMemHandle, kRequest) X(hipIpcCloseMemHandle, 0) X(hipImportExternalMemory, kRequest) \
  X(hipExternalMemoryGetMappedBuffer, kRequest) X(hipDestroyExternalMemory, 0) \
  X(hipExternalMemoryGetMappedMipmappedArray, kRequest) X(hipGraphCreate, kRequest) \
  X(hipGraphClone, kRequest) X(hipGraphDestroy, 0) X(hipGraphAddChildGraphNode, kRequest) \
  X(hipGraphInstantiate, kRequest) X(hipGraphInstantiateWithFlags, kRequest) X(hipGraphLaunch, kRequest) \
  X(hipGraphExecDestroy, 0) X(hipGraphAddMemAllocNode, kRequest) X(hipGraphAddMemFreeNode, 0) \
  X(hipDrvGraphAddMemFreeNode, 0) X(hipGraphAddNode, kRequest) \
  X(hipGraphInstantiateWithParams, kRequest) X(hipGraphUpload, kRequest) X(hipDeviceGraphMemTrim, 0) \
  X(hipGetProcAddress, 0) X(hipGetDriverEntryPoint, 0)

// Second names of C functions.
#define OOMREC_OTHER_NAMES(X) \
  X(mmap64, mmap) X(cfree, free) X(__libc_malloc, malloc) X(__libc_calloc, calloc) \
  X(__libc_realloc, realloc) X(__libc_free, free) X(__libc_memalign, memalign) \
  X(__libc_valloc, valloc) X(__libc_pvalloc, pvalloc)
// clang-format on

#define X(name, ...) name,
enum class Api : std::uint16_t {
  OOMREC_APIS(X) end_of_host,
  before_cuda = 63,  // so that each list can grow
  OOMREC_CUDA_APIS(X) end_of_cuda,
  before_hip = 255,
  OOMREC_HIP_APIS(X) end_of_hip,
};
#undef X
inline constexpr auto kApiCount = static_cast<std::size_t>(Api::end_of_hip);
inline constexpr auto kHostApiCount = static_cast<std::size_t>(Api::end_of_host);
static_assert(Api::end_of_host < Api::before_cuda && Api::end_of_cuda < Api::before_hip);

struct Function {
  std::string_view name;  // empty: no such function
  Space space = Space::heap;
  Failed failed = Failed::nothing;
  Traits traits = 0;

  constexpr bool has(Traits any) const noexcept { return (traits & any) != 0; }
};

inline constexpr auto kFunctions = [] {
  std::array<Function, kApiCount> all{};
  const auto add = [&](Api api, const Function& function) {
    all[static_cast<std::size_t>(api)] = function;
  };
#define HOST(name, space, failed, traits) \
  add(Api::name, {#name, Space::space, Failed::failed, traits});
#define CUDA(name, traits) add(Api::name, {#name, Space::cuda, Failed::error_number, traits});
#define HIP(name, traits) add(Api::name, {#name, Space::hip, Failed::error_number, traits});
  OOMREC_APIS(HOST)
  OOMREC_CUDA_APIS(CUDA)
  OOMREC_HIP_APIS(HIP)
#undef HOST
#undef CUDA
#undef HIP
  return all;
}();

inline constexpr Function kUnknownFunction{.name = "unknown"};

// A number from a newer or forged recording is that of no function.
constexpr const Function& function_of(Api api) noexcept {
  const auto index = static_cast<std::size_t>(api);
  return index < kApiCount && !kFunctions[index].name.empty() ? kFunctions[index]
                                                              : kUnknownFunction;
}
constexpr std::string_view name_of(Api api) noexcept { return function_of(api).name; }

// The space that a host function changes; the heap for those that change none. A driver's function
// may change several of its driver.
constexpr Space space_of(Api api) noexcept { return function_of(api).space; }

constexpr std::optional<Api> api_named(std::string_view name) noexcept {
  for (std::size_t i = 0; i < kApiCount; ++i)
    if (kFunctions[i].name == name && !name.empty()) return static_cast<Api>(i);
  return std::nullopt;
}

// The C functions that allocate or free, by all their names.
inline constexpr auto kMemoryFunctions = [] {
  constexpr auto is_one = [](const Function& function) {
    return function.has(kAllocates | kFrees);
  };
#define X(name, api) +1
  constexpr std::size_t kOthers = 0 OOMREC_OTHER_NAMES(X);
#undef X
  std::array<Function, std::count_if(kFunctions.begin(), kFunctions.end(), is_one) + kOthers> all{};
  auto at = std::copy_if(kFunctions.begin(), kFunctions.end(), all.begin(), is_one);
#define X(other, api)          \
  *at = function_of(Api::api); \
  (at++)->name = #other;
  OOMREC_OTHER_NAMES(X)
#undef X
  return all;
}();

// Whether a C function of this name allocates or frees blocks of the heap.
constexpr bool is_heap_function(std::string_view name) noexcept {
  return std::any_of(kMemoryFunctions.begin(), kMemoryFunctions.end(), [&](const Function& one) {
    return one.space == Space::heap && one.name == name;
  });
}

constexpr bool is_driver_api(Api api) noexcept { return api > Api::before_cuda; }

}  // namespace oomrec

// Each function of HIP's table, once.
#include "tests/gpu/hip_client.h"
#include "tests/gpu/trial.h"

namespace oomrec::gpu_trial {
namespace {

constexpr Space kMain = Space::hip, kHost = Space::hip_host, kVa = Space::hip_va;
constexpr hipMemLocation kThere{hipMemLocationTypeDevice, kOrdinal};
constexpr hipMemAllocationProp kHandleProps{1, 0, kThere, nullptr, {}};
constexpr hipMemPoolProps kPoolProps{1, 0, kThere, nullptr, {}};

void* new_block() {
  void* block = nullptr;
  need(f.hipMalloc(&block, kBytes));
  return block;
}

hipMemPool_t new_pool() {
  hipMemPool_t pool = nullptr;
  need(f.hipMemPoolCreate(&pool, &kPoolProps));
  return pool;
}

hipMemGenericAllocationHandle_t new_handle() {
  hipMemGenericAllocationHandle_t handle = nullptr;
  need(f.hipMemCreate(&handle, kBytes, &kHandleProps, 0));
  return handle;
}

void* as_pointer(int descriptor) { return reinterpret_cast<void*>(std::intptr_t{descriptor}); }

}  // namespace

// --- Devices, modules, streams, events

MAY_BE_REFUSED(hipCtxCreate, hipCtx_t, (&out, 0, kOrdinal), other.hipCtxDestroy(out))

OOMREC_TRIAL(hipDeviceReset) {
  constexpr int kOther = 0;
  void* const beside = new_block();
  need(other.hipSetDevice(kOther));
  new_block();
  takes({kMain, kBytes, 0, kOther}, [] { return f.hipDeviceReset(); });
  need(other.hipSetDevice(kOrdinal));
  need(f.hipFree(beside));
}

MAY_BE_REFUSED(hipModuleLoad, hipModule_t, (&out, "module"), 0)
MAY_BE_REFUSED(hipModuleLoadData, hipModule_t, (&out, "image"), 0)
MAY_BE_REFUSED(hipModuleLoadDataEx, hipModule_t, (&out, "image", 0, nullptr, nullptr), 0)
MAY_BE_REFUSED(hipModuleLoadFatBinary, hipModule_t, (&out, "image"), 0)
MAY_BE_REFUSED(hipLibraryLoadData, hipLibrary_t,
               (&out, "code", nullptr, nullptr, 0, nullptr, nullptr, 0), 0)
MAY_BE_REFUSED(hipLibraryLoadFromFile, hipLibrary_t,
               (&out, "path", nullptr, nullptr, 0, nullptr, nullptr, 0), 0)
MAY_BE_REFUSED(hipStreamCreate, hipStream_t, (&out), other.hipStreamDestroy(out))
MAY_BE_REFUSED(hipStreamCreateWithFlags, hipStream_t, (&out, 0), other.hipStreamDestroy(out))
MAY_BE_REFUSED(hipStreamCreateWithPriority, hipStream_t, (&out, 0, 0), other.hipStreamDestroy(out))
MAY_BE_REFUSED(hipExtStreamCreateWithCUMask, hipStream_t, (&out, 0, nullptr),
               other.hipStreamDestroy(out))
MAY_BE_REFUSED(hipEventCreate, hipEvent_t, (&out), other.hipEventDestroy(out))
MAY_BE_REFUSED(hipEventCreateWithFlags, hipEvent_t, (&out, 0), other.hipEventDestroy(out))

// --- Device and host memory

GIVES(hipMalloc, void*, kMain, (&out, kBytes), f.hipFree(out))
GIVES(hipExtMallocWithFlags, void*, kMain, (&out, kBytes, 0), f.hipFree(out))
GIVES(hipMallocManaged, void*, kMain, (&out, kBytes, 1), f.hipFree(out))
TAKES(hipFree, void*, kMain, f.hipMalloc(&out, kBytes), (out))

namespace {
constexpr std::size_t kWidth = 1000, kRows = 4096;  // the fake's pitch is a multiple of 512
}

OOMREC_TRIAL(hipMallocPitch) {
  void* out = nullptr;
  std::size_t pitch = 0;
  gives({kMain, kBytes, kWidth * kRows}, out,
        [&] { return f.hipMallocPitch(&out, &pitch, kWidth, kRows); });
  need(f.hipFree(out));
}
OOMREC_TRIAL(hipMemAllocPitch) {
  void* out = nullptr;
  std::size_t pitch = 0;
  gives({kMain, kBytes, kWidth * kRows}, out,
        [&] { return f.hipMemAllocPitch(&out, &pitch, kWidth, kRows, 4); });
  need(f.hipFree(out));
}
OOMREC_TRIAL(hipMalloc3D) {
  hipPitchedPtr out{};
  gives({kMain, kBytes, kWidth * kRows}, out, [&] {
    return f.hipMalloc3D(&out, {kWidth, kRows / 4, 4});
  });
  need(f.hipFree(out.ptr));
}

GIVES(hipMallocHost, void*, kHost, (&out, kBytes), f.hipFreeHost(out))
GIVES(hipMemAllocHost, void*, kHost, (&out, kBytes), f.hipFreeHost(out))
GIVES(hipHostMalloc, void*, kHost, (&out, kBytes, 0), f.hipHostFree(out))
GIVES(hipHostAlloc, void*, kHost, (&out, kBytes, 0), f.hipHostFree(out))
GIVES(hipExtHostAlloc, void*, kHost, (&out, kBytes, 0), f.hipHostFree(out))
TAKES(hipFreeHost, void*, kHost, f.hipMallocHost(&out, kBytes), (out))
TAKES(hipHostFree, void*, kHost, f.hipHostMalloc(&out, kBytes, 0), (out))

namespace {
alignas(4096) char g_own[kBytes];
}

OOMREC_TRIAL(hipHostRegister) {
  gives({kHost, kBytes}, g_own, [] { return f.hipHostRegister(g_own, kBytes, 0); });
  need(f.hipHostUnregister(g_own));
}
OOMREC_TRIAL(hipHostUnregister) {
  need(f.hipHostRegister(g_own, kBytes, 0));
  takes({kHost, kBytes}, [] { return f.hipHostUnregister(g_own); });
}

// --- In the order of a stream, from pools

GIVES(hipMallocAsync, void*, kMain, (&out, kBytes, nullptr), f.hipFreeAsync(out, nullptr))
TAKES(hipFreeAsync, void*, kMain, f.hipMallocAsync(&out, kBytes, nullptr), (out, nullptr))
MAY_BE_REFUSED(hipMemPoolCreate, hipMemPool_t, (&out, &kPoolProps), f.hipMemPoolDestroy(out))
MAY_BE_REFUSED(hipDeviceGetDefaultMemPool, hipMemPool_t, (&out, kOrdinal), 0)
MAY_BE_REFUSED(hipDeviceGetMemPool, hipMemPool_t, (&out, kOrdinal), 0)

OOMREC_TRIAL(hipMallocFromPoolAsync) {
  const hipMemPool_t pool = new_pool();
  void* out = nullptr;
  gives({kMain, kBytes}, out,
        [&] { return f.hipMallocFromPoolAsync(&out, kBytes, pool, nullptr); });
  need(f.hipFreeAsync(out, nullptr));
  need(f.hipMemPoolDestroy(pool));
}
OOMREC_TRIAL(hipMemGetDefaultMemPool) {
  hipMemLocation there = kThere;
  hipMemPool_t out = nullptr;
  may_be_refused({kMain}, [&] { return f.hipMemGetDefaultMemPool(&out, &there, 1); });
}
OOMREC_TRIAL(hipMemGetMemPool) {
  hipMemLocation there = kThere;
  hipMemPool_t out = nullptr;
  may_be_refused({kMain}, [&] { return f.hipMemGetMemPool(&out, &there, 1); });
}
OOMREC_TRIAL(hipMemSetMemPool) {
  hipMemLocation there = kThere;
  hipMemPool_t pool = nullptr;
  need(f.hipDeviceGetMemPool(&pool, kOrdinal));
  may_be_refused({kMain}, [&] { return f.hipMemSetMemPool(&there, 1, pool); });
}
OOMREC_TRIAL(hipDeviceSetMemPool) {
  hipMemPool_t pool = nullptr;
  need(f.hipDeviceGetMemPool(&pool, kOrdinal));
  may_be_refused({kMain}, [&] { return f.hipDeviceSetMemPool(kOrdinal, pool); });
}
OOMREC_TRIAL(hipMemPoolImportFromShareableHandle) {
  const hipMemPool_t pool = new_pool();
  int shared = -1;
  need(other.hipMemPoolExportToShareableHandle(&shared, pool, 1, 0));
  hipMemPool_t out = nullptr;
  may_be_refused({kMain}, [&] {
    return f.hipMemPoolImportFromShareableHandle(&out, as_pointer(shared), 1, 0);
  });
  need(f.hipMemPoolDestroy(out));
  need(f.hipMemPoolDestroy(pool));
}
OOMREC_TRIAL(hipMemPoolImportPointer) {
  const hipMemPool_t pool = new_pool();
  int descriptor = -1;
  need(other.hipMemPoolExportToShareableHandle(&descriptor, pool, 1, 0));
  hipMemPool_t there = nullptr;
  need(f.hipMemPoolImportFromShareableHandle(&there, as_pointer(descriptor), 1, 0));
  void *block = nullptr, *out = nullptr;
  need(f.hipMallocFromPoolAsync(&block, kBytes, pool, nullptr));
  alignas(8) char shared[64];
  need(other.hipMemPoolExportPointer(shared, block));
  gives({kVa, kBytes, 0}, out, [&] {
    return f.hipMemPoolImportPointer(&out, there,
                                     reinterpret_cast<hipMemPoolPtrExportData*>(shared));
  });
  need(f.hipFree(out));
  need(f.hipFree(block));
  need(f.hipMemPoolDestroy(there));
  need(f.hipMemPoolDestroy(pool));
}
OOMREC_TRIAL(hipMemPoolTrimTo) {
  const hipMemPool_t pool = new_pool();
  passes([&] { return f.hipMemPoolTrimTo(pool, 0); });
  need(f.hipMemPoolDestroy(pool));
}
OOMREC_TRIAL(hipMemPoolDestroy) {
  const hipMemPool_t pool = new_pool();
  passes([&] { return f.hipMemPoolDestroy(pool); });
}

// --- Memory and addresses apart

GIVES(hipMemCreate, hipMemGenericAllocationHandle_t, kMain, (&out, kBytes, &kHandleProps, 0),
      f.hipMemRelease(out))
TAKES(hipMemRelease, hipMemGenericAllocationHandle_t, kMain,
      f.hipMemCreate(&out, kBytes, &kHandleProps, 0), (out))
GIVES(hipMemAddressReserve, void*, kVa, (&out, kBytes, 0, nullptr, 0),
      f.hipMemAddressFree(out, kBytes))
TAKES(hipMemAddressFree, void*, kVa, f.hipMemAddressReserve(&out, kBytes, 0, nullptr, 0),
      (out, kBytes))

OOMREC_TRIAL(hipMemImportFromShareableHandle) {
  const hipMemGenericAllocationHandle_t handle = new_handle();
  int shared = -1;
  need(other.hipMemExportToShareableHandle(&shared, handle, 1, 0));
  hipMemGenericAllocationHandle_t out = nullptr;
  gives({kVa}, out, [&] { return f.hipMemImportFromShareableHandle(&out, as_pointer(shared), 1); });
  need(f.hipMemRelease(out));
  need(f.hipMemRelease(handle));
}

namespace {

struct Mapped {
  hipMemGenericAllocationHandle_t handle = new_handle();
  void* address = nullptr;
  Mapped() { need(f.hipMemAddressReserve(&address, kBytes, 0, nullptr, 0)); }
  ~Mapped() {
    f.hipMemAddressFree(address, kBytes);
    f.hipMemRelease(handle);
  }
  int map() { return f.hipMemMap(address, kBytes, 0, handle, 0); }
  int unmap() { return f.hipMemUnmap(address, kBytes); }
};

}  // namespace

OOMREC_TRIAL(hipMemMap) {
  Mapped mapped;
  const auto map = [&] { return mapped.map(); };
  refused_and_told({kMain}, map);
  moves_addresses(EventKind::map, {kVa, kBytes}, map);
  need(mapped.unmap());
}
OOMREC_TRIAL(hipMemUnmap) {
  Mapped mapped;
  need(mapped.map());
  const auto unmap = [&] { return mapped.unmap(); };
  refused(unmap);
  moves_addresses(EventKind::unmap, {kVa, kBytes}, unmap);
}
OOMREC_TRIAL(hipMemRetainAllocationHandle) {
  Mapped mapped;
  need(mapped.map());
  hipMemGenericAllocationHandle_t out = nullptr;
  may_be_refused({kMain}, [&] { return f.hipMemRetainAllocationHandle(&out, mapped.address); });
  CHECK(own_session::block_at(DeviceKey::handle, key_of(out))->references == 3);
  need(f.hipMemRelease(out));
  need(mapped.unmap());
}

// --- Arrays

namespace {
constexpr hipChannelFormatDesc kFloat{32, 0, 0, 0, 2};
constexpr HIP_ARRAY_DESCRIPTOR kFlat{1024, 1024, 0x20, 1};
constexpr HIP_ARRAY3D_DESCRIPTOR kCube{256, 256, 16, 0x20, 1, 0};
HIP_ARRAY3D_DESCRIPTOR g_cube = kCube;
}  // namespace

GIVES(hipMallocArray, hipArray_t, kMain, (&out, &kFloat, 1024, 1024, 0), f.hipFreeArray(out))
GIVES(hipMalloc3DArray, hipArray_t, kMain, (&out, &kFloat, {256, 256, 16}, 0), f.hipFreeArray(out))
GIVES(hipArrayCreate, hipArray_t, kMain, (&out, &kFlat), f.hipArrayDestroy(out))
GIVES(hipArray3DCreate, hipArray_t, kMain, (&out, &kCube), f.hipArrayDestroy(out))
GIVES(hipMallocMipmappedArray, hipMipmappedArray_t, kMain, (&out, &kFloat, {256, 256, 16}, 1, 0),
      f.hipFreeMipmappedArray(out))
GIVES(hipMipmappedArrayCreate, hipMipmappedArray_t, kMain, (&out, &g_cube, 1),
      f.hipMipmappedArrayDestroy(out))
TAKES(hipFreeArray, hipArray_t, kMain, f.hipArrayCreate(&out, &kFlat), (out))
TAKES(hipArrayDestroy, hipArray_t, kMain, f.hipArrayCreate(&out, &kFlat), (out))
TAKES(hipFreeMipmappedArray, hipMipmappedArray_t, kMain,
      f.hipMipmappedArrayCreate(&out, &g_cube, 1), (out))
TAKES(hipMipmappedArrayDestroy, hipMipmappedArray_t, kMain,
      f.hipMipmappedArrayCreate(&out, &g_cube, 1), (out))

// --- Memory of other processes and interfaces

OOMREC_TRIAL(hipIpcOpenMemHandle) {
  void* const block = new_block();
  hipIpcMemHandle_t shared;
  need(other.hipIpcGetMemHandle(&shared, block));
  void* out = nullptr;
  gives({kVa, kBytes, 0}, out, [&] { return f.hipIpcOpenMemHandle(&out, shared, 1); });
  need(f.hipIpcCloseMemHandle(out));
  need(f.hipFree(block));
}
OOMREC_TRIAL(hipIpcCloseMemHandle) {
  void* const block = new_block();
  hipIpcMemHandle_t shared;
  need(other.hipIpcGetMemHandle(&shared, block));
  void* out = nullptr;
  need(f.hipIpcOpenMemHandle(&out, shared, 1));
  takes({kVa, kBytes}, [&] { return f.hipIpcCloseMemHandle(out); });
  need(f.hipFree(block));
}

namespace {

hipExternalMemoryHandleDesc external_of(std::uint64_t bytes) {
  hipExternalMemoryHandleDesc description{};
  description.type = 1;
  description.size = bytes;
  return description;
}
const hipExternalMemoryHandleDesc kExternal = external_of(kBytes);

}  // namespace

GIVES(hipImportExternalMemory, hipExternalMemory_t, kVa, (&out, &kExternal),
      f.hipDestroyExternalMemory(out))
TAKES(hipDestroyExternalMemory, hipExternalMemory_t, kVa,
      f.hipImportExternalMemory(&out, &kExternal), (out))

OOMREC_TRIAL(hipExternalMemoryGetMappedBuffer) {
  hipExternalMemory_t external = nullptr;
  need(f.hipImportExternalMemory(&external, &kExternal));
  const hipExternalMemoryBufferDesc part{0, kBytes, 0};
  void* out = nullptr;
  may_be_refused({kMain},
                 [&] { return f.hipExternalMemoryGetMappedBuffer(&out, external, &part); });
  need(f.hipFree(out));
  need(f.hipDestroyExternalMemory(external));
}
OOMREC_TRIAL(hipExternalMemoryGetMappedMipmappedArray) {  // the fake has none
  hipMipmappedArray_t out = nullptr;
  refused_and_told(
      {kMain}, [&] { return f.hipExternalMemoryGetMappedMipmappedArray(&out, nullptr, nullptr); });
}

// --- Graphs

namespace {

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

}  // namespace

MAY_BE_REFUSED(hipGraphCreate, hipGraph_t, (&out, 0), f.hipGraphDestroy(out))
MAY_BE_REFUSED(hipDeviceGraphMemTrim, int, (kOrdinal), 0)

OOMREC_TRIAL(hipGraphClone) {
  const Graph original;
  hipGraph_t out = nullptr;
  may_be_refused({kMain}, [&] { return f.hipGraphClone(&out, original.graph); });
  need(f.hipGraphDestroy(out));
}
OOMREC_TRIAL(hipGraphAddChildGraphNode) {
  const Graph child;
  Graph graph;
  may_be_refused({kMain}, [&] {
    return f.hipGraphAddChildGraphNode(&graph.node, graph.graph, nullptr, 0, child.graph);
  });
}
OOMREC_TRIAL(hipGraphAddMemAllocNode) {
  Graph graph;
  hipMemAllocNodeParams params{kPoolProps, nullptr, 0, kBytes, nullptr};
  adds_a_block({kMain}, params.dptr, [&] {
    return f.hipGraphAddMemAllocNode(&graph.node, graph.graph, nullptr, 0, &params);
  });
}
OOMREC_TRIAL(hipGraphAddNode) {
  Graph graph;
  hipGraphNodeParams params{};
  params.type = hipGraphNodeTypeMemAlloc;
  params.alloc = {kPoolProps, nullptr, 0, kBytes, nullptr};
  adds_a_block({kMain}, params.alloc.dptr,
               [&] { return f.hipGraphAddNode(&graph.node, graph.graph, nullptr, 0, &params); });
}

#define ADDS_A_FREE(name)                                                                         \
  OOMREC_TRIAL(name) {                                                                            \
    Graph graph;                                                                                  \
    void* const block = graph.add_block();                                                        \
    may_be_refused({kMain}, [&] { return f.name(&graph.node, graph.graph, nullptr, 0, block); }); \
  }
ADDS_A_FREE(hipGraphAddMemFreeNode)
ADDS_A_FREE(hipDrvGraphAddMemFreeNode)

#define INSTANTIATES(name, arguments)                          \
  OOMREC_TRIAL(name) {                                         \
    const Graph graph;                                         \
    hipGraphExec_t out = nullptr;                              \
    may_be_refused({kMain}, [&] { return f.name arguments; }); \
    need(f.hipGraphExecDestroy(out));                          \
  }
namespace {
// hipGraphInstantiateParams: failed node, flags, result, stream.
struct InstantiateParams {
  hipGraphNode_t culprit = nullptr;
  unsigned long long flags = 0;
  int result = 0;
  hipStream_t stream = nullptr;
  hipGraphInstantiateParams* get() { return reinterpret_cast<hipGraphInstantiateParams*>(this); }
};
}  // namespace
INSTANTIATES(hipGraphInstantiate, (&out, graph.graph, nullptr, nullptr, 0))
INSTANTIATES(hipGraphInstantiateWithFlags, (&out, graph.graph, 0))
INSTANTIATES(hipGraphInstantiateWithParams, (&out, graph.graph, InstantiateParams{}.get()))

OOMREC_TRIAL(hipGraphUpload) {
  Graph graph;
  const hipGraphExec_t exec = graph.instantiate();
  may_be_refused({kMain}, [&] { return f.hipGraphUpload(exec, nullptr); });
  need(f.hipGraphExecDestroy(exec));
}

namespace {

template <class Launch>
void launches(Launch launch) {
  Graph graph;
  void* const block = graph.add_block();
  const hipGraphExec_t exec = graph.instantiate();
  gives({kMain, kBytes, 0}, block, [&] { return launch(exec, nullptr); });
  need(f.hipFree(block));
  need(f.hipGraphExecDestroy(exec));
}

// The address of a wrapper is found.
template <class Resolve>
void resolves(const Resolve& resolve) {
  void* out = nullptr;
  passes([&] { return resolve(&out); });
  CHECK(out == reinterpret_cast<void*>(f.hipMalloc));
}

}  // namespace

OOMREC_TRIAL(hipGraphLaunch) { launches(f.hipGraphLaunch); }
OOMREC_TRIAL(hipGraphLaunch_spt) { launches(f.hipGraphLaunch_spt); }
OOMREC_TRIAL(hipGraphExecDestroy) {
  Graph graph;
  const hipGraphExec_t exec = graph.instantiate();
  passes([&] { return f.hipGraphExecDestroy(exec); });
}
OOMREC_TRIAL(hipGraphDestroy) {
  hipGraph_t graph = nullptr;
  need(f.hipGraphCreate(&graph, 0));
  passes([&] { return f.hipGraphDestroy(graph); });
}

OOMREC_TRIAL(hipGetProcAddress) {
  resolves([](void** out) { return f.hipGetProcAddress("hipMalloc", out, 60300000, 0, nullptr); });
}
OOMREC_TRIAL(hipGetProcAddress_spt) {
  resolves(
      [](void** out) { return f.hipGetProcAddress_spt("hipMalloc", out, 60300000, 0, nullptr); });
}
OOMREC_TRIAL(hipGetDriverEntryPoint) {
  resolves([](void** out) { return f.hipGetDriverEntryPoint("hipMalloc", out, 0, nullptr); });
}
OOMREC_TRIAL(hipGetDriverEntryPoint_spt) {
  resolves([](void** out) { return f.hipGetDriverEntryPoint_spt("hipMalloc", out, 0, nullptr); });
}

}  // namespace oomrec::gpu_trial

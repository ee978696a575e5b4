// Each function of HIP's table, once: virtual memory, arrays, graphs, lookups.
#include "tests/gpu/hip_trials.h"

namespace oomrec::gpu_trial {

// --- Virtual memory

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
  check_failure({kMain}, map);
  moves_addresses(EventKind::map, {kVa, kBytes}, map);
  need(mapped.unmap());
}
OOMREC_TRIAL(hipMemUnmap) {
  Mapped mapped;
  need(mapped.map());
  const auto unmap = [&] { return mapped.unmap(); };
  fail(unmap);
  moves_addresses(EventKind::unmap, {kVa, kBytes}, unmap);
}
OOMREC_TRIAL(hipMemRetainAllocationHandle) {
  Mapped mapped;
  need(mapped.map());
  hipMemGenericAllocationHandle_t out = nullptr;
  may_fail({kMain}, [&] { return f.hipMemRetainAllocationHandle(&out, mapped.address); });
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
  may_fail({kMain}, [&] { return f.hipExternalMemoryGetMappedBuffer(&out, external, &part); });
  need(f.hipFree(out));
  need(f.hipDestroyExternalMemory(external));
}
OOMREC_TRIAL(hipExternalMemoryGetMappedMipmappedArray) {  // the fake does not have it
  hipMipmappedArray_t out = nullptr;
  check_failure({kMain},
                [&] { return f.hipExternalMemoryGetMappedMipmappedArray(&out, nullptr, nullptr); });
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
  may_fail({kMain}, [&] { return f.hipGraphClone(&out, original.graph); });
  need(f.hipGraphDestroy(out));
}
OOMREC_TRIAL(hipGraphAddChildGraphNode) {
  const Graph child;
  Graph graph;
  may_fail({kMain}, [&] {
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

#define ADDS_A_FREE(name)                                                                   \
  OOMREC_TRIAL(name) {                                                                      \
    Graph graph;                                                                            \
    void* const block = graph.add_block();                                                  \
    may_fail({kMain}, [&] { return f.name(&graph.node, graph.graph, nullptr, 0, block); }); \
  }
ADDS_A_FREE(hipGraphAddMemFreeNode)
ADDS_A_FREE(hipDrvGraphAddMemFreeNode)

#define INSTANTIATES(name, arguments)                    \
  OOMREC_TRIAL(name) {                                   \
    const Graph graph;                                   \
    hipGraphExec_t out = nullptr;                        \
    may_fail({kMain}, [&] { return f.name arguments; }); \
    need(f.hipGraphExecDestroy(out));                    \
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
  may_fail({kMain}, [&] { return f.hipGraphUpload(exec, nullptr); });
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

// The lookup finds the wrapper.
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

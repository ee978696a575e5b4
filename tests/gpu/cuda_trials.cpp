// Each function of CUDA's table, once: those that HIP's has, too, are in both_trials.h.
#include "tests/gpu/cuda_trials.h"

#include "tests/gpu/both_trials.h"

namespace oomrec::gpu_trial {

// --- Contexts

MAY_BE_REFUSED(cuCtxCreate, CUcontext, (&out, 0, kOrdinal), f.cuCtxDestroy_v2(out))
MAY_BE_REFUSED(cuCtxCreate_v2, CUcontext, (&out, 0, kOrdinal), f.cuCtxDestroy_v2(out))
MAY_BE_REFUSED(cuCtxCreate_v3, CUcontext, (&out, nullptr, 0, 0, kOrdinal), f.cuCtxDestroy_v2(out))
MAY_BE_REFUSED(cuCtxCreate_v4, CUcontext, (&out, nullptr, 0, kOrdinal), f.cuCtxDestroy_v2(out))
MAY_BE_REFUSED(cuGreenCtxCreate, CUgreenCtx, (&out, nullptr, kOrdinal, 0),
               other.cuGreenCtxDestroy(out))
MAY_BE_REFUSED(cuDevicePrimaryCtxRetain, CUcontext, (&out, kOrdinal),
               f.cuDevicePrimaryCtxRelease_v2(kOrdinal))

namespace {

// Frees everything allocated in a separate context, but not the block outside of it.
template <class End>
void ends_a_context(const End& end) {
  const CUdeviceptr beside = new_block();
  CUcontext context = nullptr;
  need(f.cuCtxCreate_v2(&context, 0, kOrdinal));
  new_block();
  takes({kMain, kBytes}, [&] { return end(context); });
  need(f.cuMemFree_v2(beside));
}

// The same for another device's primary context.
template <class End>
void ends_a_primary(const End& end) {
  constexpr int kOther = 0;
  CUcontext context = nullptr, current = nullptr;
  need(other.cuCtxGetCurrent(&current));
  need(f.cuDevicePrimaryCtxRetain(&context, kOther));
  need(other.cuCtxSetCurrent(context));
  new_block();
  takes({kMain, kBytes, 0, kOther}, [&] { return end(kOther); });
  need(other.cuCtxSetCurrent(current));
}

}  // namespace

OOMREC_TRIAL(cuCtxDestroy) { ends_a_context(f.cuCtxDestroy); }
OOMREC_TRIAL(cuCtxDestroy_v2) { ends_a_context(f.cuCtxDestroy_v2); }
OOMREC_TRIAL(cuDevicePrimaryCtxRelease) { ends_a_primary(f.cuDevicePrimaryCtxRelease); }
OOMREC_TRIAL(cuDevicePrimaryCtxRelease_v2) { ends_a_primary(f.cuDevicePrimaryCtxRelease_v2); }
OOMREC_TRIAL(cuDevicePrimaryCtxReset) { ends_a_primary(f.cuDevicePrimaryCtxReset); }
OOMREC_TRIAL(cuDevicePrimaryCtxReset_v2) { ends_a_primary(f.cuDevicePrimaryCtxReset_v2); }

// --- Modules, streams, events

MAY_BE_REFUSED(cuModuleGetFunction, CUfunction, (&out, nullptr, "kernel"), 0)
MAY_BE_REFUSED(cuLibraryGetModule, CUmodule, (&out, nullptr), 0)
MAY_BE_REFUSED(cuKernelGetFunction, CUfunction, (&out, nullptr), 0)
MAY_BE_REFUSED(cuStreamCreate, CUstream, (&out, 0), other.cuStreamDestroy_v2(out))
MAY_BE_REFUSED(cuStreamCreateWithPriority, CUstream, (&out, 0, 0), other.cuStreamDestroy_v2(out))
MAY_BE_REFUSED(cuGreenCtxStreamCreate, CUstream, (&out, nullptr, 0, 0),
               other.cuStreamDestroy_v2(out))
MAY_BE_REFUSED(cuEventCreate, CUevent, (&out, 0), other.cuEventDestroy_v2(out))

// --- Device and host memory

GIVES(cuMemAlloc, CUdeviceptr_v1, kMain, (&out, kBytes), f.cuMemFree(out))
GIVES(cuMemAlloc_v2, CUdeviceptr, kMain, (&out, kBytes), f.cuMemFree_v2(out))
GIVES(cuMemAllocManaged, CUdeviceptr, kMain, (&out, kBytes, 1), f.cuMemFree_v2(out))
TAKES(cuMemFree, CUdeviceptr_v1, kMain, f.cuMemAlloc(&out, kBytes), (out))
TAKES(cuMemFree_v2, CUdeviceptr, kMain, f.cuMemAlloc_v2(&out, kBytes), (out))

OOMREC_TRIAL(cuMemAllocPitch) {
  pitched<CUdeviceptr_v1, unsigned>(
      [](auto out, auto pitch) { return f.cuMemAllocPitch(out, pitch, kWidth, kRows, 4); },
      f.cuMemFree);
}
OOMREC_TRIAL(cuMemAllocPitch_v2) {
  pitched<CUdeviceptr, std::size_t>(
      [](auto out, auto pitch) { return f.cuMemAllocPitch_v2(out, pitch, kWidth, kRows, 4); },
      f.cuMemFree_v2);
}

GIVES(cuMemAllocHost, void*, kHost, (&out, kBytes), f.cuMemFreeHost(out))
GIVES(cuMemAllocHost_v2, void*, kHost, (&out, kBytes), f.cuMemFreeHost(out))
GIVES(cuMemHostAlloc, void*, kHost, (&out, kBytes, 0), f.cuMemFreeHost(out))
TAKES(cuMemFreeHost, void*, kHost, f.cuMemAllocHost_v2(&out, kBytes), (out))

OOMREC_TRIAL(cuMemHostRegister) { registers(f.cuMemHostRegister, f.cuMemHostUnregister); }
OOMREC_TRIAL(cuMemHostRegister_v2) { registers(f.cuMemHostRegister_v2, f.cuMemHostUnregister); }
OOMREC_TRIAL(cuMemHostUnregister) { unregisters(f.cuMemHostRegister_v2, f.cuMemHostUnregister); }

// --- Stream-ordered memory

GIVES(cuMemAllocAsync, CUdeviceptr, kMain, (&out, kBytes, nullptr), f.cuMemFreeAsync(out, nullptr))
GIVES(cuMemAllocAsync_ptsz, CUdeviceptr, kMain, (&out, kBytes, nullptr), f.cuMemFree_v2(out))
TAKES(cuMemFreeAsync, CUdeviceptr, kMain, f.cuMemAllocAsync(&out, kBytes, nullptr), (out, nullptr))
TAKES(cuMemFreeAsync_ptsz, CUdeviceptr, kMain, f.cuMemAllocAsync(&out, kBytes, nullptr),
      (out, nullptr))

OOMREC_TRIAL(cuMemAllocFromPoolAsync) { from_pool(f.cuMemAllocFromPoolAsync, f.cuMemFreeAsync); }
OOMREC_TRIAL(cuMemAllocFromPoolAsync_ptsz) {
  from_pool(f.cuMemAllocFromPoolAsync_ptsz, f.cuMemFreeAsync);
}

// --- Arrays

namespace {
constexpr CUDA_ARRAY_DESCRIPTOR kFlat{1024, 1024, 0x20, 1};  // floats
constexpr CUDA_ARRAY_DESCRIPTOR_v1 kFlat1{1024, 1024, 0x20, 1};
constexpr CUDA_ARRAY3D_DESCRIPTOR kCube{256, 256, 16, 0x20, 1, 0};
constexpr CUDA_ARRAY3D_DESCRIPTOR_v1 kCube1{256, 256, 16, 0x20, 1, 0};
}  // namespace

GIVES(cuArrayCreate, CUarray, kMain, (&out, &kFlat1), f.cuArrayDestroy(out))
GIVES(cuArrayCreate_v2, CUarray, kMain, (&out, &kFlat), f.cuArrayDestroy(out))
GIVES(cuArray3DCreate, CUarray, kMain, (&out, &kCube1), f.cuArrayDestroy(out))
GIVES(cuArray3DCreate_v2, CUarray, kMain, (&out, &kCube), f.cuArrayDestroy(out))
GIVES(cuMipmappedArrayCreate, CUmipmappedArray, kMain, (&out, &kCube, 1),
      f.cuMipmappedArrayDestroy(out))
TAKES(cuArrayDestroy, CUarray, kMain, f.cuArrayCreate_v2(&out, &kFlat), (out))
TAKES(cuMipmappedArrayDestroy, CUmipmappedArray, kMain, f.cuMipmappedArrayCreate(&out, &kCube, 1),
      (out))

// --- Virtual memory

namespace {

// Maps and unmaps memory for one tile of a sparse array.
template <class MapArray>
void maps_a_tile(MapArray map_array) {
  constexpr CUDA_ARRAY3D_DESCRIPTOR kSparse{256, 256, 16, 0x20, 1, 0x40};
  CUarray array = nullptr;
  need(f.cuArray3DCreate_v2(&array, &kSparse));
  const CUmemGenericAllocationHandle handle = new_handle();
  CUarrayMapInfo change{};
  change.resource = array;
  change.memOperationType = CU_MEM_OPERATION_TYPE_MAP;
  change.memHandle = handle;
  change.deviceBitMask = 1 << kOrdinal;
  may_fail({kMain}, [&] { return map_array(&change, 1, nullptr); });
  change.memOperationType = CU_MEM_OPERATION_TYPE_UNMAP;
  need(map_array(&change, 1, nullptr));
  need(f.cuArrayDestroy(array));
  need(f.cuMemRelease(handle));
}

}  // namespace

OOMREC_TRIAL(cuMemMapArrayAsync) { maps_a_tile(f.cuMemMapArrayAsync); }
OOMREC_TRIAL(cuMemMapArrayAsync_ptsz) { maps_a_tile(f.cuMemMapArrayAsync_ptsz); }

// --- Multicast

namespace {

constexpr CUmulticastObjectProp kMulticastProps{1, kBytes, 0, 0};

struct Multicast {
  CUmemGenericAllocationHandle handle = 0;
  Multicast() { need(f.cuMulticastCreate(&handle, &kMulticastProps)); }
  ~Multicast() { f.cuMemRelease(handle); }
};

}  // namespace

GIVES(cuMulticastCreate, CUmemGenericAllocationHandle, kVa, (&out, &kMulticastProps),
      f.cuMemRelease(out))

#define MULTICAST(name, arguments)                       \
  OOMREC_TRIAL(name) {                                   \
    const Multicast multicast;                           \
    const Mapped memory;                                 \
    may_fail({kMain}, [&] { return f.name arguments; }); \
  }
MULTICAST(cuMulticastBindMem, (multicast.handle, 0, memory.handle, 0, kBytes, 0))
MULTICAST(cuMulticastBindMem_v2, (multicast.handle, kOrdinal, 0, memory.handle, 0, kBytes, 0))
MULTICAST(cuMulticastBindAddr, (multicast.handle, 0, memory.address, kBytes, 0))
MULTICAST(cuMulticastBindAddr_v2, (multicast.handle, kOrdinal, 0, memory.address, kBytes, 0))
MULTICAST(cuMulticastUnbind, (multicast.handle, kOrdinal, 0, kBytes))

// --- Memory of other processes and interfaces

OOMREC_TRIAL(cuIpcOpenMemHandle_v2) { opens_ipc(f.cuIpcOpenMemHandle_v2); }
OOMREC_TRIAL(cuExternalMemoryGetMappedMipmappedArray) {
  const External external;
  CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC part{};
  part.arrayDesc = {256, 256, 16, 0x20, 1, 0};
  part.numLevels = 1;
  CUmipmappedArray out = nullptr;
  may_fail({kMain},
           [&] { return f.cuExternalMemoryGetMappedMipmappedArray(&out, external.memory, &part); });
  need(f.cuMipmappedArrayDestroy(out));
}

// --- Graphs and lookups

ADDS_A_NODE(cuGraphAddNode_v2, nullptr, nullptr, 0)
ADDS_A_NODE(cuGraphAddNode_v3, nullptr, nullptr, 0)
INSTANTIATES(cuGraphInstantiate_v2, (&out, graph.graph, nullptr, nullptr, 0))
INSTANTIATES(cuGraphInstantiateWithParams_ptsz, (&out, graph.graph, InstantiateParams{}.get()))
OOMREC_TRIAL(cuGraphUpload_ptsz) { uploads(f.cuGraphUpload_ptsz); }
OOMREC_TRIAL(cuGraphLaunch_ptsz) { launches(f.cuGraphLaunch_ptsz); }

OOMREC_TRIAL(cuGetProcAddress) {
  void* out = nullptr;
  passes([&] { return f.cuGetProcAddress("cuMemAlloc", &out, 13000, 0); });
  CHECK(out == reinterpret_cast<void*>(f.cuMemAlloc_v2));
}
OOMREC_TRIAL(cuGetProcAddress_v2) {
  void* out = nullptr;
  passes([&] { return f.cuGetProcAddress_v2("cuMemAlloc", &out, 2000, 0, nullptr); });
  CHECK(out == reinterpret_cast<void*>(f.cuMemAlloc));
}

}  // namespace oomrec::gpu_trial

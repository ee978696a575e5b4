// Each function of CUDA's table, once: contexts, blocks, pools, arrays.
#include "tests/gpu/cuda_trials.h"

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

MAY_BE_REFUSED(cuModuleLoad, CUmodule, (&out, "module"), 0)
MAY_BE_REFUSED(cuModuleLoadData, CUmodule, (&out, "image"), 0)
MAY_BE_REFUSED(cuModuleLoadDataEx, CUmodule, (&out, "image", 0, nullptr, nullptr), 0)
MAY_BE_REFUSED(cuModuleLoadFatBinary, CUmodule, (&out, "image"), 0)
MAY_BE_REFUSED(cuModuleGetFunction, CUfunction, (&out, nullptr, "kernel"), 0)
MAY_BE_REFUSED(cuLibraryLoadData, CUlibrary,
               (&out, "code", nullptr, nullptr, 0, nullptr, nullptr, 0), 0)
MAY_BE_REFUSED(cuLibraryLoadFromFile, CUlibrary,
               (&out, "path", nullptr, nullptr, 0, nullptr, nullptr, 0), 0)
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

namespace {

constexpr unsigned kWidth = 1000, kRows = 4096;  // the fake's pitch is a multiple of 512

template <class Pointer, class Size, class Allocate, class Free>
void pitched(Allocate allocate, Free release) {
  Pointer out{};
  Size pitch = 0;
  gives({kMain, kBytes, kWidth * kRows}, out,
        [&] { return allocate(&out, &pitch, kWidth, kRows, 4); });
  CHECK(pitch * kRows == kBytes);
  need(release(out));
}

}  // namespace

OOMREC_TRIAL(cuMemAllocPitch) { pitched<CUdeviceptr_v1, unsigned>(f.cuMemAllocPitch, f.cuMemFree); }
OOMREC_TRIAL(cuMemAllocPitch_v2) {
  pitched<CUdeviceptr, std::size_t>(f.cuMemAllocPitch_v2, f.cuMemFree_v2);
}

GIVES(cuMemAllocHost, void*, kHost, (&out, kBytes), f.cuMemFreeHost(out))
GIVES(cuMemAllocHost_v2, void*, kHost, (&out, kBytes), f.cuMemFreeHost(out))
GIVES(cuMemHostAlloc, void*, kHost, (&out, kBytes, 0), f.cuMemFreeHost(out))
TAKES(cuMemFreeHost, void*, kHost, f.cuMemAllocHost_v2(&out, kBytes), (out))

namespace {
alignas(4096) char g_own[kBytes];
}

OOMREC_TRIAL(cuMemHostRegister) {
  gives({kHost, kBytes}, g_own, [] { return f.cuMemHostRegister(g_own, kBytes, 0); });
  need(f.cuMemHostUnregister(g_own));
}
OOMREC_TRIAL(cuMemHostRegister_v2) {
  gives({kHost, kBytes}, g_own, [] { return f.cuMemHostRegister_v2(g_own, kBytes, 0); });
  need(f.cuMemHostUnregister(g_own));
}
OOMREC_TRIAL(cuMemHostUnregister) {
  need(f.cuMemHostRegister_v2(g_own, kBytes, 0));
  takes({kHost, kBytes}, [] { return f.cuMemHostUnregister(g_own); });
}

// --- Stream-ordered memory and pools

GIVES(cuMemAllocAsync, CUdeviceptr, kMain, (&out, kBytes, nullptr), f.cuMemFreeAsync(out, nullptr))
GIVES(cuMemAllocAsync_ptsz, CUdeviceptr, kMain, (&out, kBytes, nullptr), f.cuMemFree_v2(out))
TAKES(cuMemFreeAsync, CUdeviceptr, kMain, f.cuMemAllocAsync(&out, kBytes, nullptr), (out, nullptr))
TAKES(cuMemFreeAsync_ptsz, CUdeviceptr, kMain, f.cuMemAllocAsync(&out, kBytes, nullptr),
      (out, nullptr))

namespace {

template <class Allocate>
void from_pool(Allocate allocate) {
  const CUmemoryPool pool = new_pool();
  CUdeviceptr out = 0;
  gives({kMain, kBytes}, out, [&] { return allocate(&out, kBytes, pool, nullptr); });
  need(f.cuMemFreeAsync(out, nullptr));
  need(f.cuMemPoolDestroy(pool));
}

// A pool as another process would import it.
CUmemoryPool imported(CUmemoryPool pool) {
  int shared = -1;
  need(other.cuMemPoolExportToShareableHandle(&shared, pool, 1, 0));
  CUmemoryPool out = nullptr;
  need(f.cuMemPoolImportFromShareableHandle(&out, reinterpret_cast<void*>(std::intptr_t{shared}), 1,
                                            0));
  return out;
}

}  // namespace

OOMREC_TRIAL(cuMemAllocFromPoolAsync) { from_pool(f.cuMemAllocFromPoolAsync); }
OOMREC_TRIAL(cuMemAllocFromPoolAsync_ptsz) { from_pool(f.cuMemAllocFromPoolAsync_ptsz); }

MAY_BE_REFUSED(cuMemPoolCreate, CUmemoryPool, (&out, &kPoolProps), f.cuMemPoolDestroy(out))
MAY_BE_REFUSED(cuDeviceGetDefaultMemPool, CUmemoryPool, (&out, kOrdinal), 0)
MAY_BE_REFUSED(cuDeviceGetMemPool, CUmemoryPool, (&out, kOrdinal), 0)

OOMREC_TRIAL(cuMemGetDefaultMemPool) {
  CUmemLocation there = kThere;
  CUmemoryPool out = nullptr;
  may_fail({kMain}, [&] { return f.cuMemGetDefaultMemPool(&out, &there, 1); });
}
OOMREC_TRIAL(cuMemGetMemPool) {
  CUmemLocation there = kThere;
  CUmemoryPool out = nullptr;
  may_fail({kMain}, [&] { return f.cuMemGetMemPool(&out, &there, 1); });
}
OOMREC_TRIAL(cuMemSetMemPool) {
  CUmemLocation there = kThere;
  CUmemoryPool pool = nullptr;
  need(f.cuDeviceGetMemPool(&pool, kOrdinal));
  may_fail({kMain}, [&] { return f.cuMemSetMemPool(&there, 1, pool); });
}
OOMREC_TRIAL(cuDeviceSetMemPool) {
  CUmemoryPool pool = nullptr;
  need(f.cuDeviceGetMemPool(&pool, kOrdinal));
  may_fail({kMain}, [&] { return f.cuDeviceSetMemPool(kOrdinal, pool); });
}
OOMREC_TRIAL(cuMemPoolImportFromShareableHandle) {
  const CUmemoryPool pool = new_pool();
  int shared = -1;
  need(other.cuMemPoolExportToShareableHandle(&shared, pool, 1, 0));
  CUmemoryPool out = nullptr;
  may_fail({kMain}, [&] {
    return f.cuMemPoolImportFromShareableHandle(
        &out, reinterpret_cast<void*>(std::intptr_t{shared}), 1, 0);
  });
  need(f.cuMemPoolDestroy(out));
  need(f.cuMemPoolDestroy(pool));
}
OOMREC_TRIAL(cuMemPoolImportPointer) {
  const CUmemoryPool pool = new_pool(), there = imported(pool);
  CUdeviceptr block = 0, out = 0;
  need(f.cuMemAllocFromPoolAsync(&block, kBytes, pool, nullptr));
  alignas(8) char shared[64];
  need(other.cuMemPoolExportPointer(shared, block));
  gives({kVa, kBytes, 0}, out, [&] {
    return f.cuMemPoolImportPointer(&out, there, reinterpret_cast<CUmemPoolPtrExportData*>(shared));
  });
  need(f.cuMemFree_v2(out));
  need(f.cuMemFree_v2(block));
  need(f.cuMemPoolDestroy(there));
  need(f.cuMemPoolDestroy(pool));
}
OOMREC_TRIAL(cuMemPoolTrimTo) {
  const CUmemoryPool pool = new_pool();
  passes([&] { return f.cuMemPoolTrimTo(pool, 0); });
  need(f.cuMemPoolDestroy(pool));
}
OOMREC_TRIAL(cuMemPoolDestroy) {
  const CUmemoryPool pool = new_pool();
  passes([&] { return f.cuMemPoolDestroy(pool); });
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

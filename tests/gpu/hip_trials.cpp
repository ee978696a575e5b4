// Each function of HIP's table, once: devices, blocks, pools.
#include "tests/gpu/hip_trials.h"

namespace oomrec::gpu_trial {

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

// --- Stream-ordered memory and pools

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
  may_fail({kMain}, [&] { return f.hipMemGetDefaultMemPool(&out, &there, 1); });
}
OOMREC_TRIAL(hipMemGetMemPool) {
  hipMemLocation there = kThere;
  hipMemPool_t out = nullptr;
  may_fail({kMain}, [&] { return f.hipMemGetMemPool(&out, &there, 1); });
}
OOMREC_TRIAL(hipMemSetMemPool) {
  hipMemLocation there = kThere;
  hipMemPool_t pool = nullptr;
  need(f.hipDeviceGetMemPool(&pool, kOrdinal));
  may_fail({kMain}, [&] { return f.hipMemSetMemPool(&there, 1, pool); });
}
OOMREC_TRIAL(hipDeviceSetMemPool) {
  hipMemPool_t pool = nullptr;
  need(f.hipDeviceGetMemPool(&pool, kOrdinal));
  may_fail({kMain}, [&] { return f.hipDeviceSetMemPool(kOrdinal, pool); });
}
OOMREC_TRIAL(hipMemPoolImportFromShareableHandle) {
  const hipMemPool_t pool = new_pool();
  int shared = -1;
  need(other.hipMemPoolExportToShareableHandle(&shared, pool, 1, 0));
  hipMemPool_t out = nullptr;
  may_fail({kMain},
           [&] { return f.hipMemPoolImportFromShareableHandle(&out, as_pointer(shared), 1, 0); });
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

}  // namespace oomrec::gpu_trial

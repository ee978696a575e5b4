// Each function of HIP's table, once: those that CUDA's has, too, are in both_trials.h.
#include "tests/gpu/hip_trials.h"

#include "tests/gpu/both_trials.h"

namespace oomrec::gpu_trial {

// --- Devices, streams, events

MAY_BE_REFUSED(hipCtxCreate, hipCtx_t, (&out, 0, kOrdinal), other.hipCtxDestroy(out))

OOMREC_TRIAL(hipDeviceReset) {
  constexpr int kOther = 0;
  void* const beside = new_block();
  need(other.hipSetDevice(kOther));
  new_block();
  takes({kMain, kBytes, 0, kOther}, [] { return f.hipDeviceReset(); });
  need(other.hipSetDevice(kOrdinal));
  free_block(beside);
}

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

OOMREC_TRIAL(hipMallocPitch) {
  pitched<void*, std::size_t>(
      [](auto out, auto pitch) { return f.hipMallocPitch(out, pitch, kWidth, kRows); }, f.hipFree);
}
OOMREC_TRIAL(hipMemAllocPitch) {
  pitched<void*, std::size_t>(
      [](auto out, auto pitch) { return f.hipMemAllocPitch(out, pitch, kWidth, kRows, 4); },
      f.hipFree);
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

OOMREC_TRIAL(hipHostRegister) { registers(f.hipHostRegister, f.hipHostUnregister); }
OOMREC_TRIAL(hipHostUnregister) { unregisters(f.hipHostRegister, f.hipHostUnregister); }

GIVES(hipMallocAsync, void*, kMain, (&out, kBytes, nullptr), f.hipFreeAsync(out, nullptr))
TAKES(hipFreeAsync, void*, kMain, f.hipMallocAsync(&out, kBytes, nullptr), (out, nullptr))
OOMREC_TRIAL(hipMallocFromPoolAsync) { from_pool(f.hipMallocFromPoolAsync, f.hipFreeAsync); }

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

OOMREC_TRIAL(hipExternalMemoryGetMappedMipmappedArray) {  // the fake does not have it
  hipMipmappedArray_t out = nullptr;
  check_failure({kMain},
                [&] { return f.hipExternalMemoryGetMappedMipmappedArray(&out, nullptr, nullptr); });
}

// --- Graphs and lookups

ADDS_A_FREE(hipDrvGraphAddMemFreeNode)
OOMREC_TRIAL(hipGraphLaunch_spt) { launches(f.hipGraphLaunch_spt); }

namespace {

// The lookup finds the wrapper.
template <class Resolve>
void resolves(const Resolve& resolve) {
  void* out = nullptr;
  passes([&] { return resolve(&out); });
  CHECK(out == reinterpret_cast<void*>(f.hipMalloc));
}

}  // namespace

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

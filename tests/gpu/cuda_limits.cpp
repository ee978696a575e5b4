// --limit-gpu: OOMREC_LIMIT_GPU=64M@1,32M@0. Physical memory is counted once.
#include "tests/gpu/cuda_traps.h"

namespace oomrec::gpu_trial {

Functions f;
OtherFunctions other;

namespace {

constexpr std::uint64_t kMiB = 1 << 20;
constexpr int kOutOfMemory = 2;

struct Context : Primaries {
  ~Context() {
    for (const int ordinal : {0, 1}) f.cuDevicePrimaryCtxReset_v2(ordinal);
    CHECK(own_session::figures(Vendor::cuda, 1).counted == 0);
  }
};

CUdeviceptr allocate(std::uint64_t bytes) {
  CUdeviceptr block = 0;
  need(f.cuMemAlloc_v2(&block, bytes));
  return block;
}

// Failed by the recorder, without a call of the driver.
template <class Call>
void fails_at_limit(const char* function, std::uint64_t bytes, const Call& call) {
  const unsigned long before = g_calls(function);
  CHECK(call() == kOutOfMemory);
  CHECK(g_calls(function) == before);
  const own_session::Failure failure = own_session::last_failure();
  CHECK(failure.by_us);
  CHECK(failure.bytes == bytes);
  CHECK(failure.device.limit_bytes == (failure.ordinal == 1 ? 64 : 32) * kMiB);
  CHECK(failure.device.total_bytes == 1024 * kMiB);  // the device's current figure
}

}  // namespace

TEST_CASE("beyond the device's limit a call returns the driver's own error") {
  Context context;
  const CUdeviceptr block = allocate(60 * kMiB);
  CUdeviceptr out = 0;
  fails_at_limit("cuMemAlloc_v2", 5 * kMiB, [&] { return f.cuMemAlloc_v2(&out, 5 * kMiB); });
  CHECK(own_session::last_failure().device.counted_bytes == 60 * kMiB);
  allocate(4 * kMiB);  // exactly up to the limit
  fails_at_limit("cuMemAlloc_v2", 1, [&] { return f.cuMemAlloc_v2(&out, 1); });
  need(f.cuMemFree_v2(block));
  allocate(5 * kMiB);
  fails_at_limit("cuMemAlloc_v2", ~std::uint64_t{0},
                 [&] { return f.cuMemAlloc_v2(&out, ~std::size_t{0}); });
}

TEST_CASE("each device has its own limit") {
  Context context;
  allocate(60 * kMiB);
  context.use(0);
  allocate(30 * kMiB);
  CUdeviceptr out = 0;
  fails_at_limit("cuMemAlloc_v2", 3 * kMiB, [&] { return f.cuMemAlloc_v2(&out, 3 * kMiB); });
  CHECK(own_session::last_failure().ordinal == 0);
}

TEST_CASE("a limit applies to every kind of memory, and to nothing else") {
  Context context;
  allocate(62 * kMiB);
  CUdeviceptr out = 0;
  std::size_t pitch = 0;
  CUarray array = nullptr;
  constexpr CUDA_ARRAY_DESCRIPTOR kFlat{1024, 1024, 0x20, 1};
  CUmemGenericAllocationHandle handle = 0;
  fails_at_limit("cuMemAllocPitch_v2", 1000 * 4096,
                 [&] { return f.cuMemAllocPitch_v2(&out, &pitch, 1000, 4096, 4); });
  fails_at_limit("cuArrayCreate_v2", kBytes, [&] { return f.cuArrayCreate_v2(&array, &kFlat); });
  fails_at_limit("cuMemCreate", kBytes,
                 [&] { return f.cuMemCreate(&handle, kBytes, &kHandleProps, 0); });
  fails_at_limit("cuMemAllocAsync", kBytes,
                 [&] { return f.cuMemAllocAsync(&out, kBytes, nullptr); });
  context.use(0);  // the device of the handle and of the pool counts, not the current one
  const CUmemoryPool pool = new_pool();
  fails_at_limit("cuMemCreate", kBytes,
                 [&] { return f.cuMemCreate(&handle, kBytes, &kHandleProps, 0); });
  CHECK(own_session::last_failure().ordinal == 1);
  fails_at_limit("cuMemAllocFromPoolAsync", kBytes,
                 [&] { return f.cuMemAllocFromPoolAsync(&out, kBytes, pool, nullptr); });
  CHECK(own_session::last_failure().ordinal == 1);
  need(f.cuMemPoolDestroy(pool));

  context.use(1);
  void* pinned = nullptr;
  need(f.cuMemAllocManaged(&out, 100 * kMiB, 1));
  need(f.cuMemAllocHost_v2(&pinned, 100 * kMiB));
  need(f.cuMemAddressReserve(&out, 100 * kMiB, 0, 0, 0));
  need(f.cuMemAddressFree(out, 100 * kMiB));
}

TEST_CASE("a handle is counted once, its mappings are not") {
  Context context;
  CUmemGenericAllocationHandle handle = 0;
  need(f.cuMemCreate(&handle, 40 * kMiB, &kHandleProps, 0));
  CUdeviceptr address[2] = {};
  for (CUdeviceptr& at : address) {
    need(f.cuMemAddressReserve(&at, 40 * kMiB, 0, 0, 0));
    need(f.cuMemMap(at, 40 * kMiB, 0, handle, 0));
  }
  need(f.cuMemFree_v2(allocate(24 * kMiB)));
  CUdeviceptr out = 0;
  fails_at_limit("cuMemAlloc_v2", 25 * kMiB, [&] { return f.cuMemAlloc_v2(&out, 25 * kMiB); });
  need(f.cuMemRelease(handle));
  for (const CUdeviceptr at : address) {
    need(f.cuMemUnmap(at, 40 * kMiB));
    need(f.cuMemAddressFree(at, 40 * kMiB));
  }
  allocate(64 * kMiB);
}

TEST_CASE("memory kept by a pool counts until the driver reclaims it") {
  Context context;
  CUmemoryPool pool = nullptr;
  need(f.cuDeviceGetDefaultMemPool(&pool, kOrdinal));
  std::uint64_t threshold = ~std::uint64_t{0};
  need(other.cuMemPoolSetAttribute(pool, 4, &threshold));
  CUdeviceptr ordered = 0, out = 0;
  need(f.cuMemAllocAsync(&ordered, 60 * kMiB, nullptr));
  need(f.cuMemFreeAsync(ordered, nullptr));
  fails_at_limit("cuMemAlloc_v2", 8 * kMiB, [&] { return f.cuMemAlloc_v2(&out, 8 * kMiB); });
  need(f.cuMemAllocAsync(&ordered, 60 * kMiB, nullptr));  // the pool itself was not counted
  need(f.cuMemFreeAsync(ordered, nullptr));
  threshold = 0;
  need(other.cuMemPoolSetAttribute(pool, 4, &threshold));
  need(other.cuCtxSynchronize());  // the recorder is not notified
  allocate(8 * kMiB);
}

}  // namespace oomrec::gpu_trial

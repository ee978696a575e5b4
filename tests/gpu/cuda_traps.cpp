// Known pitfalls: CUDA memory whose owner, or whose end, is hard to determine.
#include <malloc.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>
#include <vector>

#include "tests/gpu/cuda_traps.h"

namespace oomrec::gpu_trial {

Functions f;
OtherFunctions other;

TEST_CASE("before cuInit and without a context, calls behave as unrecorded") {
  reach();
  CUdeviceptr block = 0;
  CHECK(f.cuMemAlloc_v2(&block, kBytes) == kNotInitialized);
  CHECK(f.cuMemFree_v2(1) == kNotInitialized);
  need(other.cuInit(0));
  CHECK(f.cuMemAlloc_v2(&block, kBytes) == kNoContext);
  CHECK(own_session::failures() <= 1);
  CHECK(own_session::new_events().empty());
  // Calls without a context are recorded, without a device if none is given.
  need(f.cuMemAddressReserve(&block, kBytes, 0, 0, 0));
  const auto events = own_session::new_events();
  REQUIRE(events.size() == 1);
  CHECK(events[0].device == 0);
  CHECK(live(kVa) == kOne);
  need(f.cuMemAddressFree(block, kBytes));
  const CUmemGenericAllocationHandle handle = new_handle();
  CHECK(counted(kOrdinal) == kOne);
  need(f.cuMemRelease(handle));
  CHECK(counted(kOrdinal) == 0);
}

TEST_CASE("a failed context creation is attributed to its device") {
  reach();
  need(other.cuInit(0));
  const std::uint64_t before = own_session::failures();
  g_fail("cuCtxCreate_v2=2;cuDevicePrimaryCtxRetain=2");
  CUcontext context = nullptr;
  CHECK(f.cuCtxCreate_v2(&context, 0, 0) == 2);
  CHECK(own_session::last_failure().ordinal == 0);
  CHECK(f.cuDevicePrimaryCtxRetain(&context, kOrdinal) == 2);
  CHECK(own_session::last_failure().ordinal == kOrdinal);
  CHECK(own_session::failures() >= before + 2);
  g_fail("");
}

TEST_CASE("NULL arguments get the driver's own error, and nothing is recorded") {
  Contexts contexts;
  const std::uint64_t before = own_session::failures();
  CUdeviceptr block = 0;
  CUarray array = nullptr;
  CUmipmappedArray mipmapped = nullptr;
  CUmemoryPool pool = nullptr;
  CUexternalMemory external = nullptr;
  CUmemGenericAllocationHandle handle = 0;
  std::size_t pitch = 0;
  Graph graph;
  const int answers[] = {
      f.cuMemAlloc(nullptr, kBytes),
      f.cuMemAlloc_v2(nullptr, kBytes),
      f.cuMemAllocPitch_v2(nullptr, &pitch, 1, 1, 4),
      f.cuMemAllocPitch_v2(&block, nullptr, 1, 1, 4),
      f.cuMemAllocManaged(nullptr, kBytes, 1),
      f.cuMemAllocHost_v2(nullptr, kBytes),
      f.cuMemHostAlloc(nullptr, kBytes, 0),
      f.cuMemHostRegister_v2(nullptr, kBytes, 0),
      f.cuMemAllocAsync(nullptr, kBytes, nullptr),
      f.cuMemAllocFromPoolAsync(nullptr, kBytes, nullptr, nullptr),
      f.cuMemPoolCreate(nullptr, &kPoolProps),
      f.cuMemPoolCreate(&pool, nullptr),
      f.cuMemPoolDestroy(nullptr),
      f.cuMemPoolTrimTo(nullptr, 0),
      f.cuDeviceGetDefaultMemPool(nullptr, 0),
      f.cuMemCreate(nullptr, kBytes, &kHandleProps, 0),
      f.cuMemCreate(&handle, kBytes, nullptr, 0),
      f.cuMemRelease(0),
      f.cuMemRetainAllocationHandle(nullptr, nullptr),
      f.cuMemAddressReserve(nullptr, kBytes, 0, 0, 0),
      f.cuMemMap(0, kBytes, 0, 0, 0),
      f.cuMemUnmap(0, kBytes),
      f.cuMemMapArrayAsync(nullptr, 1, nullptr),
      f.cuArrayCreate_v2(&array, nullptr),
      f.cuArray3DCreate_v2(&array, nullptr),
      f.cuMipmappedArrayCreate(&mipmapped, nullptr, 1),
      f.cuMulticastCreate(&handle, nullptr),
      f.cuIpcOpenMemHandle_v2(nullptr, {}, 1),
      f.cuImportExternalMemory(&external, nullptr),
      f.cuGraphCreate(nullptr, 0),
      f.cuGraphAddMemAllocNode(&graph.node, graph.graph, nullptr, 0, nullptr),
      f.cuGraphAddNode(&graph.node, graph.graph, nullptr, 0, nullptr),
      f.cuGraphInstantiateWithFlags(nullptr, graph.graph, 0),
      f.cuGraphLaunch(nullptr, nullptr),
      f.cuCtxCreate_v2(nullptr, 0, kOrdinal),
      f.cuDevicePrimaryCtxRetain(nullptr, kOrdinal),
      f.cuGetProcAddress("cuMemAlloc", nullptr, 12000, 0),
      f.cuGetProcAddress_v2(nullptr, nullptr, 12000, 0, nullptr),
  };
  for (std::size_t i = 0; i < std::size(answers); ++i) {
    CAPTURE(i);
    CHECK(answers[i] != 0);
    CHECK(answers[i] != 2);
  }
  CHECK(f.cuMemAlloc_v2(nullptr, kBytes) == kInvalidValue);
  CHECK(f.cuMemFree_v2(0) == 0);
  CHECK(f.cuMemFreeHost(nullptr) == 0);
  CHECK(own_session::new_events().empty());
  CHECK(own_session::failures() == before);
}

TEST_CASE("a free counts on the device that allocated") {
  Contexts contexts;
  const CUdeviceptr block = new_block();
  CHECK(counted(1) == kOne);
  contexts.use(0);
  need(f.cuMemFree_v2(block));
  CHECK(counted(1) == 0);
  CHECK(counted(0) == 0);
  CHECK(own_session::ordinal_of(own_session::new_events().back().device) == 1);
  contexts.use(1);
  const CUdeviceptr another = new_block();
  need(other.cuCtxSetCurrent(nullptr));  // no context is needed, either
  need(f.cuMemFree_v2(another));
  CHECK(counted(1) == 0);
}

TEST_CASE("stream-ordered memory may be freed on a stream of another device") {
  Contexts contexts;
  CUstream first = nullptr, second = nullptr;
  need(f.cuStreamCreate(&first, 0));
  contexts.use(0);
  need(f.cuStreamCreate(&second, 0));
  CUdeviceptr block = 0;
  need(f.cuMemAllocAsync(&block, kBytes, second));
  CHECK(own_session::block_at(DeviceKey::address, block)->ordinal == 0);
  contexts.use(1);
  need(f.cuMemFreeAsync(block, first));
  CHECK(own_session::figures(Vendor::cuda, 0).pool_used == 0);
  CHECK(live() == 0);
}

TEST_CASE("a context's device is known from its creation on, even if it is never current again") {
  Contexts contexts;
  CUcontext made = nullptr;
  need(f.cuCtxCreate_v2(&made, 0, 0));
  CUstream stream = nullptr;
  need(f.cuStreamCreate(&stream, 0));
  need(other.cuCtxPopCurrent_v2(&made));
  CUdeviceptr block = 0;
  g_fail("cuMemAllocAsync=2");
  CHECK(f.cuMemAllocAsync(&block, kBytes, stream) == 2);
  g_fail("");
  CHECK(own_session::last_failure().ordinal == 0);
  need(f.cuCtxDestroy_v2(made));
}

TEST_CASE("a pool's memory counts on its device until it is trimmed or destroyed") {
  Contexts contexts;
  contexts.use(0);
  const CUmemoryPool pool = new_pool();  // on device 1
  std::uint64_t all = ~std::uint64_t{0};
  need(other.cuMemPoolSetAttribute(pool, 4, &all));  // the release threshold
  CUdeviceptr block = 0;
  need(f.cuMemAllocFromPoolAsync(&block, kBytes, pool, nullptr));
  const auto used = own_session::figures(Vendor::cuda, 1);
  CHECK(used.pool_used == kBytes);
  CHECK(used.pool_reserved == kBytes);
  CHECK(used.counted == kBytes);
  need(f.cuMemFreeAsync(block, nullptr));
  CHECK(live() == 0);
  CHECK(own_session::figures(Vendor::cuda, 1).pool_used == 0);
  CHECK(counted(1) == kOne);
  CHECK(counted(0) == 0);
  SUBCASE("trimmed") {
    need(f.cuMemPoolTrimTo(pool, 0));
    CHECK(counted(1) == 0);
    need(f.cuMemPoolDestroy(pool));
  }
  SUBCASE("destroyed") {
    need(f.cuMemPoolDestroy(pool));
    CHECK(counted(1) == 0);
  }
  SUBCASE("of a reset device") {
    need(f.cuDevicePrimaryCtxReset_v2(1));
    CHECK(counted(1) == 0);
    need(f.cuDevicePrimaryCtxRetain(&contexts.of[1], 1));
  }
}

TEST_CASE("a context's memory is freed with it, other memory is not") {
  Contexts contexts;
  const CUmemGenericAllocationHandle handle = new_handle();
  CUcontext context = nullptr;
  need(f.cuCtxCreate_v2(&context, 0, 0));
  for (int i = 0; i < 100; ++i) {
    CUdeviceptr block = 0;
    need(f.cuMemAlloc_v2(&block, 4096));
  }
  void* pinned = nullptr;
  need(f.cuMemAllocHost_v2(&pinned, kBytes));
  constexpr CUDA_ARRAY_DESCRIPTOR kFlat{1024, 1024, 0x20, 1};
  CUarray array = nullptr;
  need(f.cuArrayCreate_v2(&array, &kFlat));
  CHECK(counted(0) == 100 * 4096 + kOne);
  CHECK(live(kHost) == kOne);
  need(f.cuCtxDestroy_v2(context));
  CHECK(counted(0) == 0);
  CHECK(live(kHost) == 0);
  CHECK(live() == kOne);
  need(f.cuMemRelease(handle));
}

TEST_CASE("a primary context ends with its last user") {
  Contexts contexts;
  new_block();
  CUdeviceptr ordered = 0;
  need(f.cuMemAllocAsync(&ordered, kBytes, nullptr));
  CUcontext again = nullptr;
  need(f.cuDevicePrimaryCtxRetain(&again, kOrdinal));
  need(f.cuDevicePrimaryCtxRelease_v2(kOrdinal));
  CHECK(live() == 2 * kOne);
  need(f.cuDevicePrimaryCtxRelease_v2(kOrdinal));
  CHECK(live() == 0);
  CHECK(counted(kOrdinal) == 0);
  need(f.cuDevicePrimaryCtxRetain(&again, kOrdinal));
}

TEST_CASE("managed memory has a separate space; a driver that calls itself is counted once") {
  Contexts contexts;  // FAKE_GPU_CALLS_ITSELF: cuMemAllocManaged calls cuMemAlloc_v2
  const unsigned long before = g_calls("cuMemAlloc_v2");
  CUdeviceptr block = 0;
  need(f.cuMemAllocManaged(&block, kBytes, 1));
  CHECK(g_calls("cuMemAlloc_v2") == before + 1);
  const auto events = own_session::new_events();
  REQUIRE(events.size() == 1);
  CHECK(events[0].api == Api::cuMemAllocManaged);
  CHECK(live() == kOne);
  CHECK(own_session::figures(Vendor::cuda, 1).managed == kBytes);
  CHECK(counted(1) == 0);
  need(f.cuMemFree_v2(block));
  CHECK(own_session::figures(Vendor::cuda, 1).managed == 0);
}

TEST_CASE("host memory allocated by a driver is the program's") {
  Contexts contexts;
  need(f.cuMemFree_v2(new_block()));
  const auto heap = [] { return own_session::view().totals(Space::heap); };
  const std::size_t malloced = mallinfo2().uordblks;
  const auto before = heap();
  constexpr int kCalls = 1000;
  for (int i = 0; i < kCalls; ++i) f.cuMemFree_v2(new_block());
  const auto after = heap();
  CHECK(after.allocated_count >= before.allocated_count + 2 * kCalls);
  CHECK(after.live_bytes == before.live_bytes);
  CHECK(mallinfo2().uordblks == malloced);
}

TEST_CASE("a forked child has no device memory and does not call the driver") {
  Contexts contexts;
  const CUdeviceptr block = new_block();
  const pid_t child = fork();
  if (child == 0) {
    std::vector<char> enough(4 << 20, 1);  // enough to start a session
    const unsigned long before = g_calls("cuMemGetInfo_v2") + g_calls("cuCtxGetCurrent");
    CUdeviceptr mine = 0;
    const bool failed = f.cuMemAlloc_v2(&mine, kBytes) == kNotInitialized;
    const bool asked = g_calls("cuMemGetInfo_v2") + g_calls("cuCtxGetCurrent") != before;
    own_session::reopen();
    const bool nothing = own_session::view().header().pid == getpid() && live() == 0 &&
                         own_session::held(kMain).bytes == 0 &&
                         own_session::view().count(session::TableId::device_blocks) <= 1;
    _exit(enough[1] == 1 && failed && !asked && nothing ? 0 : 1);
  }
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  CHECK(live() == kOne);
  need(f.cuMemFree_v2(block));
}

TEST_CASE("eight threads: each block is counted once and freed once") {
  Contexts contexts;
  constexpr int kThreads = 8, kRounds = 2000, kKept = 4;
  const auto before = own_session::view().totals(kMain);
  std::vector<std::thread> threads;
  std::vector<CUdeviceptr> kept(kThreads * kKept);
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      other.cuCtxSetCurrent(contexts.of[t % 2]);
      for (int i = 0; i < kRounds; ++i) {
        CUdeviceptr block = 0;
        f.cuMemAlloc_v2(&block, 4096);
        f.cuMemFree_v2(block);
      }
      for (int i = 0; i < kKept; ++i)
        f.cuMemAlloc_v2(&kept[static_cast<std::size_t>(t * kKept + i)], 4096);
    });
  }
  for (std::thread& thread : threads) thread.join();
  const auto after = own_session::view().totals(kMain);
  CHECK(after.allocated_count - before.allocated_count == kThreads * (kRounds + kKept));
  const std::uint64_t left = kThreads * kKept;
  const own_session::Held blocks = own_session::blocks_of(kMain), held = own_session::held(kMain);
  CHECK(blocks.count == left);
  CHECK(held.count == left);
  CHECK(blocks.bytes == left * 4096);
  CHECK(held.bytes == left * 4096);
  CHECK(counted(0) + counted(1) == static_cast<std::int64_t>(left * 4096));
  for (const CUdeviceptr block : kept) need(f.cuMemFree_v2(block));
  CHECK(own_session::view().header().dropped_events == 0);
}

}  // namespace oomrec::gpu_trial

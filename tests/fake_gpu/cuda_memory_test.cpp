// The fake driver's kinds of memory: what each takes of the device, and when it is freed.
#include "tests/fake_gpu/cuda_session.h"

using namespace fake_cuda_test;

TEST_CASE("the first ABI's addresses have 32 bits") {
  const Session session;
  CUdeviceptr_v1 block = 0;
  REQUIRE(cuMemAlloc(&block, 3 * kMiB) == 0);
  CHECK(block != 0);
  CHECK(used() == 3 * kMiB);
  CHECK(cuMemFree(block) == 0);
  CHECK(used() == 0);
}

TEST_CASE("rows are padded to the pitch, arrays are counted by elements") {
  const Session session;
  CUdeviceptr block = 0;
  std::size_t pitch = 0;
  REQUIRE(cuMemAllocPitch_v2(&block, &pitch, 513, 10, 4) == 0);
  CHECK(pitch == 1024);
  CHECK(used() == 10240);
  REQUIRE(cuMemFree_v2(block) == 0);
  constexpr int kFloat = 0x20;
  const CUDA_ARRAY_DESCRIPTOR shape = {100, 30, kFloat, 2};
  CUarray array = nullptr;
  REQUIRE(cuArrayCreate_v2(&array, &shape) == 0);
  CHECK(used() == 100 * 30 * 8);
  REQUIRE(cuArrayDestroy(array) == 0);
  CHECK(cuArrayDestroy(array) != 0);
  CHECK(used() == 0);
}

TEST_CASE("a pool keeps freed memory until a synchronization, or down to its threshold") {
  const Session session;
  CUmemoryPool pool = nullptr;
  REQUIRE(cuDeviceGetDefaultMemPool(&pool, 0) == 0);
  unsigned long long threshold = 0;
  std::size_t kept = 0;
  SUBCASE("no threshold") {}
  SUBCASE("1 MiB") { threshold = kept = kMiB; }
  REQUIRE(cuMemPoolSetAttribute(pool, 4, &threshold) == 0);
  CUdeviceptr block = 0;
  REQUIRE(cuMemAllocAsync(&block, 5 * kMiB, nullptr) == 0);
  REQUIRE(cuMemFreeAsync(block, nullptr) == 0);
  CHECK(used() == 5 * kMiB);
  REQUIRE(cuCtxSynchronize() == 0);
  CHECK(used() == kept);
  unsigned long long now = 1;
  REQUIRE(cuMemPoolGetAttribute(pool, 7, &now) == 0);  // used
  CHECK(now == 0);
  REQUIRE(cuMemPoolGetAttribute(pool, 5, &now) == 0);  // reserved
  CHECK(now == kept);
  REQUIRE(cuMemPoolTrimTo(pool, 0) == 0);
  CHECK(used() == 0);
  threshold = 0;
  REQUIRE(cuMemPoolSetAttribute(pool, 4, &threshold) == 0);
}

TEST_CASE("a graph's block lives from a launch to a free, and forbids a second launch") {
  const Session session;
  CUstream stream = nullptr;
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
  CUdeviceptr block = 0;
  REQUIRE(cuStreamCreate(&stream, 0) == 0);
  SUBCASE("by capture") {
    REQUIRE(cuStreamBeginCapture_v2(stream, 0) == 0);
    REQUIRE(cuMemAllocAsync(&block, 7 * kMiB, stream) == 0);
    REQUIRE(cuStreamEndCapture(stream, &graph) == 0);
  }
  SUBCASE("by a node") {
    REQUIRE(cuGraphCreate(&graph, 0) == 0);
    CUDA_MEM_ALLOC_NODE_PARAMS params = {};
    params.poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    params.bytesize = 7 * kMiB;
    CUgraphNode node = nullptr;
    REQUIRE(cuGraphAddMemAllocNode(&node, graph, nullptr, 0, &params) == 0);
    block = params.dptr;
  }
  CUgraph clone = nullptr;
  CHECK(cuGraphClone(&clone, graph) == kNotSupported);
  REQUIRE(cuGraphInstantiateWithFlags(&exec, graph, 0) == 0);
  CHECK(block != 0);
  CHECK(used() == 0);
  CHECK(cuMemFree_v2(block) == kInvalidValue);
  REQUIRE(cuGraphLaunch(exec, stream) == 0);
  CHECK(used() == 7 * kMiB);
  CHECK(cuGraphLaunch(exec, stream) == kInvalidValue);
  REQUIRE(cuMemFreeAsync(block, stream) == 0);
  REQUIRE(cuGraphLaunch(exec, stream) == 0);
  REQUIRE(cuGraphExecDestroy(exec) == 0);
  REQUIRE(cuGraphDestroy(graph) == 0);
  CHECK(used() == 7 * kMiB);
  REQUIRE(cuMemFree_v2(block) == 0);
  CHECK(used() == 7 * kMiB);  // the graphs' reserve
  REQUIRE(cuDeviceGraphMemTrim(0) == 0);
  CHECK(used() == 0);
  REQUIRE(cuStreamDestroy_v2(stream) == 0);
}

TEST_CASE("physical memory is freed once it is released and unmapped") {
  const Session session;
  CUmemAllocationProp props = {};
  props.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  CUmemGenericAllocationHandle handle = 0;
  CUdeviceptr address = 0;
  REQUIRE(cuMemCreate(&handle, 4 * kMiB, &props, 0) == 0);
  CHECK(cuMemCreate(&handle, kMiB, &props, 0) == kInvalidValue);  // no multiple of 2 MiB
  REQUIRE(cuMemAddressReserve(&address, 8 * kMiB, 0, 0, 0) == 0);
  CHECK(used() == 4 * kMiB);
  REQUIRE(cuMemMap(address + 4 * kMiB, 4 * kMiB, 0, handle, 0) == 0);
  REQUIRE(cuMemSetAccess(address + 4 * kMiB, 4 * kMiB, nullptr, 0) == 0);
  const int word = 4711;
  REQUIRE(cuMemcpyHtoD_v2(address + 5 * kMiB, &word, sizeof word) == 0);
  CUmemGenericAllocationHandle again = 0;
  REQUIRE(cuMemRetainAllocationHandle(&again, reinterpret_cast<void*>(address + 5 * kMiB)) == 0);
  CHECK(again == handle);
  REQUIRE(cuMemRelease(handle) == 0);
  REQUIRE(cuMemRelease(handle) == 0);
  CHECK(cuMemRelease(handle) == kInvalidValue);
  CHECK(used() == 4 * kMiB);
  REQUIRE(cuMemUnmap(address + 4 * kMiB, 4 * kMiB) == 0);
  CHECK(used() == 0);
  CHECK(cuMemUnmap(address + 4 * kMiB, 4 * kMiB) == kInvalidValue);
  CHECK(cuMemAddressFree(address, 8 * kMiB) == 0);
}

TEST_CASE("imported memory has an address and does not count on the device") {
  const Session session;
  CUdeviceptr block = 0;
  CUdeviceptr opened = 0;
  CUipcMemHandle shared;
  REQUIRE(cuMemAlloc_v2(&block, kMiB) == 0);
  REQUIRE(cuIpcGetMemHandle(&shared, block) == 0);
  REQUIRE(cuIpcOpenMemHandle_v2(&opened, shared, 0) == 0);
  CHECK(opened != block);
  CHECK(used() == kMiB);
  CHECK(cuIpcCloseMemHandle(opened) == 0);
  CUDA_EXTERNAL_MEMORY_HANDLE_DESC description = {};
  description.size = 3 * kMiB;
  CUexternalMemory external = nullptr;
  REQUIRE(cuImportExternalMemory(&external, &description) == 0);
  const CUDA_EXTERNAL_MEMORY_BUFFER_DESC part = {kMiB, kMiB, 0, {}};
  CHECK(cuExternalMemoryGetMappedBuffer(&opened, external, &part) == 0);
  CHECK(used() == kMiB);
  CHECK(cuDestroyExternalMemory(external) == 0);
  CHECK(cuDestroyExternalMemory(external) != 0);
}

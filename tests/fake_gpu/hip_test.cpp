// The fake HIP runtime, as a program uses it: no context, a current device for each thread.
#include <dlfcn.h>
#include <doctest/doctest.h>

#include <cstdlib>
#include <string>
#include <thread>

#include "tests/fake_gpu/test_declarations.h"

using namespace oomrec::shim::hip;

namespace {

constexpr std::size_t kMiB = 1 << 20;

std::size_t used() {
  std::size_t free = 0;
  std::size_t total = 0;
  REQUIRE(hipMemGetInfo(&free, &total) == 0);
  return total - free;
}

}  // namespace

TEST_CASE("every function of the table is exported; the names have versions") {
#define X(name, ...) CHECK_MESSAGE(dlsym(RTLD_DEFAULT, #name) != nullptr, #name);
  OOMREC_HIP_FUNCTIONS(X)
#undef X
  CHECK(dlvsym(RTLD_DEFAULT, "hipMalloc", "hip_4.2") == dlsym(RTLD_DEFAULT, "hipMalloc"));
  CHECK(dlvsym(RTLD_DEFAULT, "hipMemCreate", "hip_5.2") != nullptr);
}

TEST_CASE("a lookup returns exported addresses, or an error") {
  void* found = nullptr;
  int status = -1;
  CHECK(hipGetProcAddress("hipMalloc", &found, 60300000, 0, &status) == 0);
  CHECK(found == dlsym(RTLD_DEFAULT, "hipMalloc"));
  CHECK(status == 0);
  CHECK(hipGetProcAddress("hipGraphLaunch", &found, 60300000, 2, &status) == 0);
  CHECK(found == dlsym(RTLD_DEFAULT, "hipGraphLaunch_spt"));
  CHECK(hipGetProcAddress("hipNoSuchThing", &found, 60300000, 0, nullptr) == 0);
  CHECK(found == nullptr);
}

TEST_CASE("memory belongs to the device that was current at its allocation") {
  setenv("FAKE_GPU_BYTES", "256M", 1);  // read when memory is asked for
  int count = 0;
  REQUIRE(hipGetDeviceCount(&count) == 0);
  REQUIRE(count == 2);
  void* block = nullptr;
  REQUIRE(hipSetDevice(1) == 0);
  REQUIRE(hipMalloc(&block, 200 * kMiB) == 0);
  CHECK(used() == 200 * kMiB);
  void* other = nullptr;
  CHECK(hipMalloc(&other, 100 * kMiB) == 2);
  CHECK(hipGetLastError() == 2);
  CHECK(hipGetLastError() == 0);
  CHECK(hipMalloc(&other, 0) == 0);
  CHECK(other == nullptr);
  std::thread{[&] {
    int device = -1;
    CHECK(hipGetDevice(&device) == 0);
    CHECK(device == 0);
    CHECK(used() == 0);
    CHECK(hipFree(block) == 0);
  }}.join();
  CHECK(used() == 0);
  CHECK(hipSetDevice(2) == 101);
  CHECK(std::string(hipGetErrorName(2)) == "hipErrorOutOfMemory");
  CHECK(std::string(hipGetErrorString(2)) == "out of memory");
}

TEST_CASE("pitched, stream-ordered and virtual memory are counted; a reset frees the first two") {
  REQUIRE(hipSetDevice(0) == 0);
  hipPitchedPtr pitched = {};
  REQUIRE(hipMalloc3D(&pitched, {100, 10, 3}) == 0);
  CHECK(pitched.pitch == 512);
  CHECK(used() == 512 * 30);
  void* ordered = nullptr;
  REQUIRE(hipMallocAsync(&ordered, kMiB, nullptr) == 0);
  CHECK(used() == 512 * 30 + kMiB);
  hipMemAllocationProp props = {};
  props.location = {hipMemLocationTypeDevice, 0};
  hipMemGenericAllocationHandle_t handle = nullptr;
  REQUIRE(hipMemCreate(&handle, 2 * kMiB, &props, 0) == 0);
  REQUIRE(hipDeviceReset() == 0);
  REQUIRE(hipMemRelease(handle) == 0);
  hipMemPool_t pool = nullptr;
  REQUIRE(hipDeviceGetMemPool(&pool, 0) == 0);
  REQUIRE(hipMemPoolTrimTo(pool, 0) == 0);
  CHECK(used() == 0);
}

TEST_CASE("a graph's block lives from its launch on") {
  REQUIRE(hipSetDevice(0) == 0);
  hipGraph_t graph = nullptr;
  hipGraphExec_t exec = nullptr;
  hipGraphNode_t node = nullptr;
  hipMemAllocNodeParams params = {};
  params.poolProps.location = {hipMemLocationTypeDevice, 0};
  params.bytesize = 3 * kMiB;
  REQUIRE(hipGraphCreate(&graph, 0) == 0);
  REQUIRE(hipGraphAddMemAllocNode(&node, graph, nullptr, 0, &params) == 0);
  REQUIRE(hipGraphInstantiate(&exec, graph, nullptr, nullptr, 0) == 0);
  CHECK(used() == 0);
  REQUIRE(hipGraphLaunch(exec, nullptr) == 0);
  CHECK(used() == 3 * kMiB);
  CHECK(hipFree(params.dptr) == 0);
  CHECK(hipDeviceGraphMemTrim(0) == 0);
  CHECK(used() == 0);
  CHECK(hipGraphExecDestroy(exec) == 0);
  CHECK(hipGraphDestroy(graph) == 0);
}

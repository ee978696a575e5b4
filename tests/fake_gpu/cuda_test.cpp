// Uses the fake driver like a program: linked, and looked up by cuGetProcAddress.
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <set>
#include <string>
#include <thread>

#include "tests/fake_gpu/cuda_session.h"

using namespace fake_cuda_test;

namespace {

int g_seen = 0;  // calls of cuMemAlloc_v2 by its symbol

void* real(const char* name) { return dlsym(RTLD_NEXT, name); }

// The function under its exported name, or as a runtime looks it up.
template <class F>
F* by(bool look_up, F* linked, const char* base, int version) {
  if (!look_up) return linked;
  void* found = nullptr;
  int status = -1;
  REQUIRE(cuGetProcAddress_v2(base, &found, version, 0, &status) == 0);
  REQUIRE(status == 0);
  return reinterpret_cast<F*>(found);
}

std::string base_of(std::string name) {
  for (const char* suffix : {"_ptsz", "_ptds", "_v2", "_v3", "_v4"})
    if (name.size() > 5 && name.ends_with(suffix)) name.resize(name.size() - std::strlen(suffix));
  return name;
}

}  // namespace

// Like a recorder's wrapper: calls of the program and of the driver itself arrive here.
extern "C" int cuMemAlloc_v2(CUdeviceptr* block, std::size_t bytes) {
  ++g_seen;
  return reinterpret_cast<int (*)(CUdeviceptr*, std::size_t)>(real("cuMemAlloc_v2"))(block, bytes);
}

TEST_CASE("every function of the table is exported, and found under its base name") {
  std::set<void*> exported;
  std::set<std::string> bases;
#define X(name, ...)                            \
  CHECK_MESSAGE(real(#name) != nullptr, #name); \
  exported.insert(real(#name));                 \
  bases.insert(base_of(#name));
  OOMREC_CUDA_FUNCTIONS(X)
#undef X
  for (const std::string& base : bases)
    for (const cuuint64_t flags : {0u, 2u}) {
      void* found = nullptr;
      REQUIRE(cuGetProcAddress_v2(base.c_str(), &found, 13050, flags, nullptr) == 0);
      CHECK_MESSAGE(exported.count(found) == 1, base);
    }
}

TEST_CASE("a lookup returns the version's form of a function, and the reason if there is none") {
  void* found = nullptr;
  int status = -1;
  auto look_up = [&](const char* name, int version, cuuint64_t flags) {
    REQUIRE(cuGetProcAddress_v2(name, &found, version, flags, &status) == 0);
    return found;
  };
  CHECK(look_up("cuMemAlloc", 2000, 0) == real("cuMemAlloc"));
  CHECK(look_up("cuMemAlloc", 3020, 0) == real("cuMemAlloc_v2"));
  CHECK(look_up("cuMemAlloc", 13050, 2) == real("cuMemAlloc_v2"));
  CHECK(look_up("cuMemAllocAsync", 11020, 0) == real("cuMemAllocAsync"));
  CHECK(look_up("cuMemAllocAsync", 11020, 2) == real("cuMemAllocAsync_ptsz"));
  CHECK(look_up("cuGetProcAddress", 11030, 0) == real("cuGetProcAddress"));
  CHECK(look_up("cuGetProcAddress", 12000, 0) == real("cuGetProcAddress_v2"));
  CHECK(status == 0);
  CHECK(look_up("cuMemAlloc_v2", 13050, 0) == nullptr);
  CHECK(status == 1);
  CHECK(look_up("cuMemAllocAsync", 11010, 0) == nullptr);
  CHECK(status == 2);
  CHECK(cuGetProcAddress("cuMemFree", &found, 11030, 0) == 0);  // the older form, of four
  CHECK(found == real("cuMemFree_v2"));
  CHECK(cuGetProcAddress_v2("cuNoSuchThing", &found, 13050, 0, nullptr) == 0);
  CHECK(found == nullptr);
}

TEST_CASE("CUDA is not initialized before cuInit and in a forked child; 201 without a context") {
  const Session session;
  CUdeviceptr block = 0;
  int in_thread = 0;
  std::thread{[&] { in_thread = cuMemAlloc_v2(&block, kMiB); }}.join();
  CHECK(in_thread == kInvalidContext);
  const pid_t child = fork();
  if (child == 0) _exit(cuMemAlloc_v2(&block, kMiB) == kNotInitialized ? 0 : 1);
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
}

TEST_CASE("device memory is capped, counted on its device, and copied both ways") {
  bool look_up = false;
  SUBCASE("linked") {}
  SUBCASE("by cuGetProcAddress") { look_up = true; }
  auto* const allocate = by(look_up, &cuMemAlloc_v2, "cuMemAlloc", 3020);
  auto* const free_block = by(look_up, &cuMemFree_v2, "cuMemFree", 3020);
  const Session session;
  CUdeviceptr block = 0;
  REQUIRE(allocate(&block, 200 * kMiB + 1) == 0);
  CHECK(used() == 200 * kMiB + 1);
  CUdeviceptr other = 0;
  CHECK(allocate(&other, 100 * kMiB) == kOutOfMemory);
  CHECK(allocate(&other, 0) == kInvalidValue);
  CHECK(allocate(nullptr, 1) == kInvalidValue);

  char text[] = "over and back";
  char back[sizeof text] = {};
  REQUIRE(cuMemcpyHtoD_v2(block + 777, text, sizeof text) == 0);
  REQUIRE(cuMemcpyDtoH_v2(back, block + 777, sizeof back) == 0);
  CHECK(std::string(back) == text);
  CUdeviceptr base = 0;
  std::size_t bytes = 0;
  REQUIRE(cuMemGetAddressRange_v2(&base, &bytes, block + 777) == 0);
  CHECK(base == block);
  CHECK(bytes == 200 * kMiB + 1);

  int freed = -1;  // by a thread whose device is the other one
  std::thread{[&] {
    const Session elsewhere{1};
    freed = free_block(block);
    CHECK(used() == 0);
  }}.join();
  CHECK(freed == 0);
  CHECK(used() == 0);
  CHECK(free_block(block) == kInvalidValue);
  CHECK(free_block(0) == 0);
}

TEST_CASE("memory of a context is freed with it") {
  const Session session;
  CUcontext first = nullptr;
  REQUIRE(cuCtxGetCurrent(&first) == 0);
  CUdeviceptr block = 0;
  REQUIRE(cuMemAlloc_v2(&block, kMiB) == 0);
  CUcontext second = nullptr;
  REQUIRE(cuCtxCreate_v2(&second, 0, 0) == 0);
  REQUIRE(cuMemAlloc_v2(&block, 2 * kMiB) == 0);
  CHECK(used() == 3 * kMiB);
  REQUIRE(cuCtxDestroy_v2(second) == 0);
  CUcontext current = nullptr;
  REQUIRE(cuCtxGetCurrent(&current) == 0);
  CHECK(current == first);
  CHECK(used() == kMiB);
  CHECK(cuCtxSetCurrent(second) == kInvalidContext);
  REQUIRE(cuDevicePrimaryCtxReset_v2(0) == 0);
  CHECK(cuMemAlloc_v2(&block, kMiB) == 709);  // the context is destroyed
  REQUIRE(cuDevicePrimaryCtxRetain(&current, 0) == 0);
  CHECK(current == first);
  CHECK(used() == 0);
}

TEST_CASE("a rule fails the n-th call, or every one, and calls are counted") {
  const Session session;
  fake_gpu_fail("cuMemAlloc_v2=2:nth=2;cuCtxCreate_v2=2");
  CUdeviceptr block = 0;
  CHECK(cuMemAlloc_v2(&block, kMiB) == 0);
  CHECK(cuMemAlloc_v2(&block, kMiB) == kOutOfMemory);
  CHECK(cuMemAlloc_v2(&block, kMiB) == 0);
  CUcontext context = nullptr;
  CHECK(cuCtxCreate_v2(&context, 0, 0) == kOutOfMemory);
  CHECK(cuCtxCreate_v2(&context, 0, 0) == kOutOfMemory);
  CHECK(fake_gpu_calls("cuMemAlloc_v2") >= 3);
  fake_gpu_reset();
  CHECK(fake_gpu_calls("cuMemAlloc_v2") == 0);
  CHECK(cuMemAlloc_v2(&block, kMiB) == 0);
  CHECK(fake_gpu_calls("cuMemAlloc_v2") == 1);
  const char* name = nullptr;
  CHECK(cuGetErrorName(kOutOfMemory, &name) == 0);
  CHECK(std::string(name) == "CUDA_ERROR_OUT_OF_MEMORY");
}

TEST_CASE("on request, managed memory is allocated through the exported name") {
  REQUIRE(setenv("FAKE_GPU_CALLS_ITSELF", "1", 1) == 0);  // the only test of managed memory here
  const Session session;
  CUdeviceptr block = 0;
  const int before = g_seen;
  REQUIRE(cuMemAllocManaged(&block, kMiB, 1) == 0);
  CHECK(g_seen == before + 1);
  CHECK(cuMemFree_v2(block) == 0);
}

TEST_CASE("devices are renumbered by CUDA_VISIBLE_DEVICES and keep their UUIDs") {
  REQUIRE(cuInit(0) == 0);
  const char* const visible = std::getenv("CUDA_VISIBLE_DEVICES");  // "1" in a separate run
  int count = 0;
  REQUIRE(cuDeviceGetCount(&count) == 0);
  CHECK(count == (visible == nullptr ? 2 : 1));
  unsigned char uuid[16] = {};
  REQUIRE(cuDeviceGetUuid_v2(uuid, 0) == 0);
  CHECK(uuid[15] == (visible == nullptr ? 0 : 1));
  CHECK(cuDeviceGetUuid_v2(uuid, count) == 101);
}

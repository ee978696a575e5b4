// The fake NVML: the environment's figures, and the fake driver's devices.
#include <doctest/doctest.h>

#include <cstdlib>
#include <string>

#include "tests/fake_gpu/core/uuid.h"

extern "C" {
int nvmlInit_v2();
int nvmlShutdown();
int nvmlDeviceGetCount_v2(unsigned* count);
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device);
int nvmlDeviceGetUUID(void* device, char* text, unsigned bytes);
struct Memory {
  unsigned long long total, free, used;
};
int nvmlDeviceGetMemoryInfo(void* device, Memory* memory);
struct ProcessInfo {
  unsigned pid;
  unsigned long long bytes;
  unsigned instances[2];
};
int nvmlDeviceGetComputeRunningProcesses_v3(void* device, unsigned* count, ProcessInfo* processes);
}

TEST_CASE("devices have the figures and processes given in the environment") {
  void* device = nullptr;
  CHECK(nvmlDeviceGetHandleByIndex_v2(0, &device) == 1);  // not initialized
  setenv("FAKE_GPU_BYTES", "256M", 1);
  setenv("FAKE_NVML", "1:total=8G,used=3G,pid=123/500M,pid=124", 1);
  REQUIRE(nvmlInit_v2() == 0);
  unsigned count = 0;
  REQUIRE(nvmlDeviceGetCount_v2(&count) == 0);
  CHECK(count == 2);
  REQUIRE(nvmlDeviceGetHandleByIndex_v2(0, &device) == 0);
  Memory memory = {};
  REQUIRE(nvmlDeviceGetMemoryInfo(device, &memory) == 0);
  CHECK(memory.total == 256ull << 20);
  CHECK(memory.used == 0);
  REQUIRE(nvmlDeviceGetHandleByIndex_v2(1, &device) == 0);
  REQUIRE(nvmlDeviceGetMemoryInfo(device, &memory) == 0);
  CHECK(memory.total == 8ull << 30);
  CHECK(memory.used == 3ull << 30);
  CHECK(memory.free == 5ull << 30);
  unsigned room = 1;
  ProcessInfo processes[2] = {};
  CHECK(nvmlDeviceGetComputeRunningProcesses_v3(device, &room, processes) == 7);
  REQUIRE(room == 2);
  REQUIRE(nvmlDeviceGetComputeRunningProcesses_v3(device, &room, processes) == 0);
  CHECK(processes[0].pid == 123);
  CHECK(processes[0].bytes == 500ull << 20);
  CHECK(processes[1].pid == 124);
  CHECK(processes[1].bytes == ~0ull);
  REQUIRE(nvmlShutdown() == 0);
}

TEST_CASE("UUIDs are the driver's, in NVML's spelling") {
  REQUIRE(nvmlInit_v2() == 0);
  void* device = nullptr;
  char text[80] = {};
  REQUIRE(nvmlDeviceGetHandleByIndex_v2(1, &device) == 0);
  REQUIRE(nvmlDeviceGetUUID(device, text, sizeof text) == 0);
  CHECK(std::string(text) == "GPU-fa4ecd01-9d3c-4b71-8e25-6fd013a75801");
  std::uint8_t uuid[16];
  fake_gpu::fake_uuid(fake_gpu::kCudaMark, 1, uuid);
  CHECK(uuid[0] == 0xfa);
  CHECK(uuid[15] == 0x01);
  CHECK(nvmlDeviceGetUUID(device, text, 10) == 7);
  REQUIRE(nvmlShutdown() == 0);
}

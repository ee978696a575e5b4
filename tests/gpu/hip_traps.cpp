// Specifics of HIP: one function frees both kinds of memory, a device can be reset.
#include "tests/gpu/hip_trials.h"

namespace oomrec::gpu_trial {

Functions f;
OtherFunctions other;

namespace {

void begin() {
  static const Reached reached;
  need(other.hipSetDevice(kOrdinal));
  REQUIRE(own_session::live_bytes(Space::hip) == 0);
  REQUIRE(own_session::live_bytes(Space::hip_host) == 0);
}

}  // namespace

TEST_CASE("hipFree frees host memory, hipHostFree device memory") {
  begin();
  void *host = nullptr, *block = nullptr;
  need(f.hipHostMalloc(&host, kBytes, 0));
  need(f.hipMalloc(&block, kBytes));
  CHECK(own_session::live_bytes(Space::hip_host) == kOne);
  CHECK(own_session::live_bytes(Space::hip) == kOne);
  need(f.hipFree(host));
  CHECK(own_session::live_bytes(Space::hip_host) == 0);
  CHECK(own_session::live_bytes(Space::hip) == kOne);
  need(f.hipHostFree(block));
  CHECK(own_session::live_bytes(Space::hip) == 0);
  CHECK(own_session::figures(Vendor::hip, kOrdinal).counted == 0);
}

TEST_CASE("a request of 0 bytes gives NULL, which can be freed") {
  begin();
  own_session::new_events();
  void* block = &block;
  need(f.hipMalloc(&block, 0));
  CHECK(block == nullptr);
  need(f.hipFree(block));
  CHECK(f.hipMalloc(nullptr, kBytes) == 1);
  CHECK(other.hipGetLastError() == 1);  // the runtime was not called before
  CHECK(own_session::new_events().empty());
}

TEST_CASE("a reset frees the current device's memory only") {
  begin();
  void *block = nullptr, *host = nullptr, *ordered = nullptr, *beside = nullptr;
  need(f.hipMalloc(&block, kBytes));
  need(f.hipHostMalloc(&host, kBytes, 0));
  need(f.hipMallocAsync(&ordered, kBytes, nullptr));
  need(other.hipSetDevice(0));
  need(f.hipMalloc(&beside, kBytes));
  need(other.hipSetDevice(kOrdinal));
  need(f.hipDeviceReset());
  CHECK(own_session::live_bytes(Space::hip) == kOne);
  CHECK(own_session::live_bytes(Space::hip_host) == 0);
  CHECK(own_session::figures(Vendor::hip, kOrdinal).counted == 0);
  CHECK(own_session::figures(Vendor::hip, 0).counted == kBytes);
  need(f.hipFree(beside));
  CHECK(own_session::figures(Vendor::hip, 0).counted == 0);
}

TEST_CASE("a captured graph's block") {
  begin();
  hipStream_t stream = nullptr;
  need(f.hipStreamCreate(&stream));
  need(other.hipStreamBeginCapture(stream, 0));
  void* block = nullptr;
  need(f.hipMallocAsync(&block, kBytes, stream));
  hipGraph_t graph = nullptr;
  need(other.hipStreamEndCapture(stream, &graph));
  CHECK(own_session::live_bytes(Space::hip) == 0);
  hipGraphExec_t exec = nullptr;
  need(f.hipGraphInstantiateWithFlags(&exec, graph, 0));
  need(f.hipGraphLaunch(exec, stream));
  CHECK(own_session::live_bytes(Space::hip) == kOne);
  need(f.hipFreeAsync(block, stream));
  CHECK(own_session::live_bytes(Space::hip) == 0);
  need(f.hipGraphExecDestroy(exec));
  need(f.hipGraphDestroy(graph));
}

}  // namespace oomrec::gpu_trial

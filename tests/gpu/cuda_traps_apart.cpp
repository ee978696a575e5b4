// Pitfalls of virtual memory and of graphs.
#include "tests/gpu/cuda_traps.h"

namespace oomrec::gpu_trial {

TEST_CASE("mapped memory stays after its handle is released") {
  Contexts contexts;
  const CUmemGenericAllocationHandle handle = new_handle();
  CUdeviceptr first = 0, second = 0;
  for (CUdeviceptr* const address : {&first, &second}) {
    need(f.cuMemAddressReserve(address, kBytes, 0, 0, 0));
    need(f.cuMemMap(*address, kBytes, 0, handle, 0));
  }
  CHECK(live() == kOne);  // counted once, however often it is mapped
  CHECK(live(kVa) == 2 * kOne);
  CHECK(counted(1) == kOne);
  need(f.cuMemRelease(handle));
  CHECK(live() == kOne);
  need(f.cuMemUnmap(first, kBytes));
  CHECK(live() == kOne);
  CUmemGenericAllocationHandle again = 0;
  need(f.cuMemRetainAllocationHandle(&again, reinterpret_cast<void*>(second)));
  CHECK(again == handle);
  need(f.cuMemUnmap(second, kBytes));
  CHECK(live() == kOne);
  need(f.cuMemRelease(again));
  CHECK(live() == 0);
  CHECK(counted(1) == 0);
  for (const CUdeviceptr address : {first, second}) need(f.cuMemAddressFree(address, kBytes));
}

TEST_CASE("many mappings are unmapped by one call") {
  Contexts contexts;
  CUdeviceptr address = 0;
  need(f.cuMemAddressReserve(&address, 3 * kBytes, 0, 0, 0));
  for (int i = 0; i < 3; ++i) {
    const CUmemGenericAllocationHandle handle = new_handle();
    need(f.cuMemMap(address + static_cast<CUdeviceptr>(i) * kBytes, kBytes, 0, handle, 0));
    need(f.cuMemRelease(handle));
  }
  CHECK(live() == 3 * kOne);
  need(f.cuMemUnmap(address, 3 * kBytes));
  CHECK(live() == 0);
  need(f.cuMemAddressFree(address, 3 * kBytes));
}

TEST_CASE("a graph's block is live from each launch until it is freed") {
  Contexts contexts;
  Graph graph;
  const CUdeviceptr block = graph.add_block();
  const CUgraphExec exec = graph.instantiate();
  for (int round = 0; round < 2; ++round) {
    CHECK(live() == 0);
    need(f.cuGraphLaunch(exec, nullptr));
    CHECK(live() == kOne);
    CHECK(counted(1) == kOne);
    need(round == 0 ? f.cuMemFree_v2(block) : f.cuMemFreeAsync(block, nullptr));
  }
  CHECK(live() == 0);
  need(f.cuGraphExecDestroy(exec));
}

TEST_CASE("a graph that frees its own block holds nothing after a launch") {
  Contexts contexts;
  Graph graph;
  graph.add_free(graph.add_block());
  const CUgraphExec exec = graph.instantiate();
  need(f.cuGraphLaunch(exec, nullptr));
  CHECK(live() == 0);
  CHECK(own_session::new_events().empty());
  need(f.cuGraphExecDestroy(exec));
}

TEST_CASE("a block that another graph frees") {
  Contexts contexts;
  Graph first, second;
  const CUdeviceptr block = first.add_block();
  second.add_free(block);
  const CUgraphExec makes = first.instantiate(), frees = second.instantiate();
  for (int round = 0; round < 2; ++round) {
    need(f.cuGraphLaunch(makes, nullptr));
    CHECK(live() == kOne);
    need(f.cuGraphLaunch(frees, nullptr));
    CHECK(live() == 0);
  }
  need(f.cuGraphExecDestroy(makes));
  need(f.cuGraphExecDestroy(frees));
}

TEST_CASE("a destroyed graph lives on in its instances, and so does a live block") {
  Contexts contexts;
  CUdeviceptr block = 0;
  CUgraphExec exec = nullptr;
  {
    Graph graph;
    block = graph.add_block();
    exec = graph.instantiate();
  }
  need(f.cuGraphLaunch(exec, nullptr));
  CHECK(live() == kOne);
  need(f.cuGraphExecDestroy(exec));
  CHECK(live() == kOne);
  need(f.cuMemFree_v2(block));
  CHECK(live() == 0);
  CHECK_FALSE(own_session::block_at(DeviceKey::graph_block, block).has_value());
}

TEST_CASE("a captured stream allocates nothing until its graph is launched") {
  Contexts contexts;
  CUstream stream = nullptr;
  need(f.cuStreamCreate(&stream, 0));
  need(other.cuStreamBeginCapture_v2(stream, 0));
  CUdeviceptr kept = 0, freed = 0;
  need(f.cuMemAllocAsync(&kept, kBytes, stream));
  need(f.cuMemAllocAsync(&freed, kBytes, stream));
  need(f.cuMemFreeAsync(freed, stream));
  CUgraph graph = nullptr;
  need(other.cuStreamEndCapture(stream, &graph));
  CHECK(live() == 0);
  CUgraphExec exec = nullptr;
  need(f.cuGraphInstantiateWithFlags(&exec, graph, 0));
  need(f.cuGraphLaunch(exec, stream));
  CHECK(live() == kOne);
  need(f.cuMemFreeAsync(kept, stream));
  CHECK(live() == 0);
  need(f.cuGraphExecDestroy(exec));
  need(f.cuGraphDestroy(graph));
  CHECK_FALSE(own_session::block_at(DeviceKey::graph_block, kept).has_value());
}

}  // namespace oomrec::gpu_trial

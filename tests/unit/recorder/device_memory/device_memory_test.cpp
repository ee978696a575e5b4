// The recorder's accounting of GPU memory, without a driver: the test makes the shim's calls.
#include <doctest/doctest.h>

#include <thread>
#include <vector>

#include "recorder/device_memory/graphs.h"
#include "recorder/device_memory/lifetimes.h"
#include "recorder/device_memory/memory.h"
#include "recorder/device_memory/polling.h"
#include "recorder/devices/registry.h"
#include "tests/unit/recorder/running.h"

using namespace oomrec;
using namespace oomrec::running;
using doubles::t_stack;
using live::DeviceName;
using recorder::DeviceMemory;
using session::Device;
using session::DeviceBlock;
using session::DeviceKey;
using session::DeviceKind;
using session::g_session;
using session::Vendor;

namespace {

constexpr std::uint64_t kBlock = 0x7000'0000'0000, kContext = 0xc0de;

std::uint32_t device(int ordinal, Vendor vendor = Vendor::cuda) {
  need(Mode::exact);
  recorder::DeviceIdentity identity{vendor, ordinal, {}, "a device"};
  return recorder::describe_device(kHook, identity);
}

const Device& figures(std::uint32_t entry) { return g_session.devices.at(entry); }

void give(std::uint32_t entry, std::uint64_t address, std::uint64_t bytes,
          DeviceKind kind = DeviceKind::block, std::uint64_t owner = 0) {
  DeviceMemory memory{Api::cuMemAlloc, {Vendor::cuda, DeviceKey::address, address}, kind, bytes};
  memory.device = entry;
  memory.context = kind == DeviceKind::pooled ? 0 : kContext;
  memory.owner = owner;
  recorder::on_device_allocate(kHook, memory);
}
recorder::DeviceReleased take(std::uint64_t address) {
  return recorder::on_device_free(kHook, Api::cuMemFree,
                                  {Vendor::cuda, DeviceKey::address, address});
}

std::uint64_t live_in(Space space = Space::cuda) {
  return static_cast<std::uint64_t>(totals(space).live_bytes);
}

// Checks that blocks = Σ holders, in bytes and in number.
bool blocks_agree() {
  std::uint64_t bytes = 0, count = 0, held_bytes = 0, held_count = 0;
  for (std::uint32_t i = 1; i < g_session.device_blocks.size(); ++i) {
    const DeviceBlock& block = g_session.device_blocks.at(i);
    if (block.key == 0 || block.kind == static_cast<std::uint8_t>(DeviceKind::none) ||
        (block.flags & session::kDeviceDormant) != 0)
      continue;
    bytes += block.bytes;
    ++count;
  }
  session::Holder holder;
  for (std::uint32_t i = 1; i < g_session.holders.size(); ++i) {
    if (!g_session.view().holder(i, holder) || !is_device_space(static_cast<Space>(holder.space)))
      continue;
    held_bytes += holder.live_bytes;
    held_count += holder.live_count;
  }
  return bytes == held_bytes && count == held_count;
}

}  // namespace

TEST_CASE("a device is described once, by vendor and number") {
  const std::uint32_t first = device(0), second = device(1);
  CHECK(first != 0);
  CHECK(second != first);
  CHECK(device(0) == first);
  CHECK(device(0, Vendor::hip) != first);
  CHECK(recorder::device_entry(kHook, Vendor::cuda, 1) == second);
  CHECK(recorder::device_entry(kHook, Vendor::cuda, 9) == 0);
  CHECK(recorder::device_entry(kHook, Vendor::cuda, -1) == 0);
}

TEST_CASE("a free counts against the device that allocated; a failed one counts nothing") {
  const std::uint32_t entry = device(0);
  give(entry, kBlock, 3 * kMiB);
  CHECK(figures(entry).counted_bytes() == 3 * kMiB);
  CHECK(live_in() == 3 * kMiB);
  const auto released = take(kBlock);
  CHECK(released.gone);
  CHECK(figures(entry).counted_bytes() == 0);
  recorder::restore_on_device(kHook, released);
  CHECK(figures(entry).counted_bytes() == 3 * kMiB);
  CHECK(live_in() == 3 * kMiB);
  CHECK(blocks_agree());
  take(kBlock);
  CHECK_FALSE(take(kBlock).gone);  // twice
  CHECK(figures(entry).counted_bytes() == 0);
  CHECK(figures(entry).peak_bytes >= 3 * kMiB);
  CHECK(live_in() == 0);
  CHECK(blocks_agree());
}

TEST_CASE("a reused address means that the free of the old block was missed") {
  const std::uint32_t entry = device(0);
  give(entry, kBlock, 5 * kMiB);
  give(entry, kBlock, 2 * kMiB);
  CHECK(live_in() == 2 * kMiB);
  CHECK(figures(entry).counted_bytes() == 2 * kMiB);
  take(kBlock);
  CHECK(live_in() == 0);
}

TEST_CASE("one address in two drivers, or of two kinds, is two blocks") {
  const std::uint32_t cuda = device(0), hip = device(0, Vendor::hip);
  give(cuda, kBlock, kMiB);
  recorder::on_device_allocate(kHook, {Api::hipMalloc,
                                       {Vendor::hip, DeviceKey::address, kBlock},
                                       DeviceKind::block,
                                       2 * kMiB,
                                       hip});
  recorder::on_device_allocate(
      kHook,
      {Api::cuMemAllocHost, {Vendor::cuda, DeviceKey::host, kBlock}, DeviceKind::host, 4 * kMiB});
  CHECK(live_in(Space::cuda) == kMiB);
  CHECK(live_in(Space::hip) == 2 * kMiB);
  CHECK(live_in(Space::cuda_host) == 4 * kMiB);
  take(kBlock);
  CHECK(live_in(Space::hip) == 2 * kMiB);
  // Either of HIP's functions frees either kind; CUDA's do not.
  CHECK_FALSE(take(kBlock).gone);
  CHECK(recorder::on_device_free(kHook, Api::hipHostFree, {Vendor::hip, DeviceKey::host, kBlock})
            .gone);
  CHECK(live_in(Space::hip) == 0);
  recorder::on_device_free(kHook, Api::cuMemFreeHost, {Vendor::cuda, DeviceKey::host, kBlock});
  CHECK(blocks_agree());
}

TEST_CASE("pools: used bytes, kept bytes, and their device") {
  const std::uint32_t entry = device(0);
  const DeviceName pool{Vendor::cuda, DeviceKey::pool, 0x900};
  recorder::on_pool_polled(kHook, pool, entry, 0);
  CHECK(recorder::device_of_pool(kHook, pool) == entry);
  give(entry, kBlock, 6 * kMiB, DeviceKind::pooled, pool.key);
  CHECK(figures(entry).counted_bytes() == 6 * kMiB);
  recorder::on_pool_polled(kHook, pool, entry, 8 * kMiB);
  CHECK(figures(entry).counted_bytes() == 8 * kMiB);
  take(kBlock);
  CHECK(figures(entry).counted_bytes() == 8 * kMiB);
  std::uint64_t handles[4] = {};
  CHECK(recorder::pools_of(kHook, Vendor::cuda, entry, handles) == 1);
  CHECK(handles[0] == pool.key);
  recorder::on_pool_end(kHook, Api::cuMemPoolDestroy, pool);
  CHECK(figures(entry).counted_bytes() == 0);
  CHECK(recorder::pools_of(kHook, Vendor::cuda, entry, handles) == 0);
}

TEST_CASE("a context's memory is freed with it, a device's pools by its reset") {
  const std::uint32_t entry = device(0);
  const DeviceName pool{Vendor::cuda, DeviceKey::pool, 0x901};
  recorder::on_pool_polled(kHook, pool, entry, kMiB);
  for (std::uint64_t i = 0; i < 100; ++i) give(entry, kBlock + i * kMiB, kMiB);
  give(entry, kBlock + 200 * kMiB, kMiB, DeviceKind::pooled, pool.key);
  recorder::on_context_end(kHook, Api::cuCtxDestroy, Vendor::cuda, kContext + 1);
  recorder::on_context_end(kHook, Api::cuCtxDestroy, Vendor::hip, kContext);
  CHECK(live_in() == 101 * kMiB);
  recorder::on_context_end(kHook, Api::cuCtxDestroy, Vendor::cuda, kContext);
  CHECK(live_in() == kMiB);
  CHECK(blocks_agree());
  recorder::on_device_reset(kHook, Api::cuDevicePrimaryCtxReset, Vendor::cuda, 0, entry);
  CHECK(live_in() == 0);
  CHECK(figures(entry).counted_bytes() == 0);
  CHECK(blocks_agree());
}

TEST_CASE("a handle's memory stays while it is mapped, and is counted once") {
  const std::uint32_t entry = device(0);
  const DeviceName handle{Vendor::cuda, DeviceKey::handle, 0x77};
  recorder::on_device_allocate(kHook,
                               {Api::cuMemCreate, handle, DeviceKind::block, 2 * kMiB, entry});
  recorder::on_device_map(kHook, Api::cuMemMap, Vendor::cuda, kBlock, 2 * kMiB, handle.key);
  recorder::on_device_map(kHook, Api::cuMemMap, Vendor::cuda, kBlock + 2 * kMiB, 2 * kMiB,
                          handle.key);
  CHECK(live_in() == 2 * kMiB);
  CHECK(live_in(Space::cuda_va) == 0);
  const auto released = recorder::on_device_free(kHook, Api::cuMemRelease, handle);
  CHECK_FALSE(released.gone);
  CHECK(live_in() == 2 * kMiB);
  recorder::restore_on_device(kHook, released);
  recorder::on_device_free(kHook, Api::cuMemRelease, handle);
  recorder::on_device_unmap(kHook, Api::cuMemUnmap, Vendor::cuda, kBlock, 4 * kMiB);
  CHECK(live_in() == 0);
  CHECK_FALSE(recorder::on_device_retain(kHook, handle));
}

TEST_CASE("a graph's block is live from a launch on; one that its graph frees never is") {
  const std::uint32_t entry = device(0);
  constexpr std::uint64_t kGraph = 0x61, kExec = 0x62;
  DeviceMemory memory{Api::cuGraphAddMemAllocNode,
                      {Vendor::cuda, DeviceKey::address, kBlock},
                      DeviceKind::block,
                      kMiB,
                      entry};
  t_stack = 77;
  recorder::on_graph_block(kHook, kGraph, memory);
  memory.name.key += kMiB;
  recorder::on_graph_block(kHook, kGraph, memory);
  recorder::on_graph_free(kHook, Vendor::cuda, kGraph, memory.name.key);
  recorder::on_graph_instantiated(kHook, Vendor::cuda, kGraph, kExec);
  CHECK(live_in() == 0);
  t_stack = 78;
  recorder::on_graph_launched(kHook, Api::cuGraphLaunch, Vendor::cuda, kExec);
  CHECK(live_in() == kMiB);
  CHECK(holder_of(77, Space::cuda)->live_bytes == kMiB);  // by the stack that made the node
  recorder::on_graph_destroyed(kHook, Vendor::cuda, kGraph);
  take(kBlock);
  CHECK(live_in() == 0);
  recorder::on_graph_launched(kHook, Api::cuGraphLaunch, Vendor::cuda, kExec);
  CHECK(live_in() == kMiB);
  recorder::on_executable_destroyed(kHook, Vendor::cuda, kExec);
  CHECK(live_in() == kMiB);
  CHECK(take(kBlock).gone);
  CHECK(live_in() == 0);
  CHECK_FALSE(take(kBlock).gone);
  CHECK(blocks_agree());
}

TEST_CASE("threads allocate, free and end contexts concurrently") {
  const std::uint32_t entry = device(1);
  constexpr std::uint64_t kThreads = 8, kRounds = 2000;
  const auto before = totals(Space::cuda);
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([=] {
      t_stack = static_cast<std::uint32_t>(100 + t);
      const std::uint64_t own = kBlock + (t << 32);
      for (std::uint64_t i = 0; i < kRounds; ++i) {
        give(entry, own + i % 16 * kMiB, 4096);
        if (i % 16 >= 8) take(own + (i % 16 - 8) * kMiB);
        if (i % 500 == 499)
          recorder::on_context_end(kHook, Api::cuCtxDestroy, Vendor::cuda, kContext);
      }
      for (std::uint64_t i = 0; i < 16; ++i) take(own + i * kMiB);
    });
  }
  for (std::thread& thread : threads) thread.join();
  recorder::on_context_end(kHook, Api::cuCtxDestroy, Vendor::cuda, kContext);
  CHECK(totals(Space::cuda).allocated_count - before.allocated_count == kThreads * kRounds);
  CHECK(live_in() == 0);
  CHECK(totals(Space::cuda).live_count == 0);
  CHECK(figures(entry).block_bytes == 0);
  CHECK(blocks_agree());
}

#include "recorder/device_memory/preexisting_devices.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "recorder/device_memory/accounting.h"
#include "recorder/devices/registry.h"
#include "recorder/process/preexisting.h"
#include "recorder/state/state.h"
#include "recorder/state/thread_state.h"

namespace oomrec::recorder {
namespace {

using session::Device;
using session::g_session;
using session::GpuBeforeAttach;

struct Before {
  std::atomic<std::uint64_t> bytes{0};  // still there; until it is added: that the device had
  std::atomic<std::uint32_t> entry{0};  // 0: the program has not used it yet
  std::atomic<std::uint32_t> holder{0};
  std::uint8_t uuid[16] = {};
};
constinit Before g_before[GpuBeforeAttach::kMostDevices];
constinit std::atomic<std::size_t> g_count{0};

live::DeviceBlock block_of(const Before& before, const Device& device,
                           std::uint64_t bytes) noexcept {
  live::DeviceBlock block;
  block.name.vendor = static_cast<Vendor>(device.vendor);
  block.kind = DeviceKind::block;
  block.bytes = bytes;
  block.holder = before.holder.load(std::memory_order_relaxed);
  block.device = before.entry.load(std::memory_order_relaxed);
  return block;
}

}  // namespace

void set_preexisting_devices(InHook, std::span<const GpuBeforeAttach::Device> devices) noexcept {
  const std::size_t count = std::min(devices.size(), std::size(g_before));
  for (std::size_t i = 0; i < count; ++i) {
    std::memcpy(g_before[i].uuid, devices[i].uuid, sizeof g_before[i].uuid);
    g_before[i].bytes.store(devices[i].bytes, std::memory_order_relaxed);
    g_before[i].entry.store(0, std::memory_order_relaxed);
    g_before[i].holder.store(0, std::memory_order_relaxed);
  }
  g_count.store(count, std::memory_order_release);
}

void forget_preexisting_devices() noexcept { g_count.store(0, std::memory_order_relaxed); }

bool has_preexisting_devices() noexcept { return g_count.load(std::memory_order_acquire) != 0; }

void add_preexisting_device(InHook hook, std::uint32_t entry) noexcept {
  const std::size_t count = g_count.load(std::memory_order_acquire);
  if (count == 0 || phase() != Phase::active || !is_known_device(entry)) return;
  const Device& device = g_session.devices.at(entry);
  for (Before& before : std::span{g_before, count}) {
    std::uint32_t none = 0;
    if (std::memcmp(before.uuid, device.uuid, sizeof before.uuid) != 0 ||
        !before.entry.compare_exchange_strong(none, entry, std::memory_order_relaxed))
      continue;
    const Space space = space_of(static_cast<Vendor>(device.vendor), DeviceKind::block);
    const std::uint32_t holder = preexisting_holder(hook, space, entry);
    if (holder == 0) return drop();
    before.holder.store(holder, std::memory_order_relaxed);
    ThreadState* const thread = current_thread(hook);
    count_in(hook, thread, block_of(before, device, before.bytes.load(std::memory_order_relaxed)));
    publish_device(hook, thread, static_cast<Vendor>(device.vendor));
  }
}

void release_preexisting_on_device(InHook hook, std::uint32_t entry, std::uint64_t bytes) noexcept {
  const std::size_t count = g_count.load(std::memory_order_acquire);
  for (Before& before : std::span{g_before, count}) {
    if (before.entry.load(std::memory_order_relaxed) != entry ||
        before.holder.load(std::memory_order_relaxed) == 0)
      continue;
    std::uint64_t left = before.bytes.load(std::memory_order_relaxed), gone = 0;
    do gone = std::min(left, bytes);
    while (!before.bytes.compare_exchange_weak(left, left - gone, std::memory_order_relaxed));
    if (gone == 0) continue;
    const Device& device = g_session.devices.at(entry);
    ThreadState* const thread = current_thread(hook);
    count_part_out(hook, thread, block_of(before, device, gone));
    publish_device(hook, thread, static_cast<Vendor>(device.vendor));
  }
}

}  // namespace oomrec::recorder

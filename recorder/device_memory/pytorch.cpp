#include "recorder/device_memory/pytorch.h"

#include <cstring>

#include "common/system/files.h"
#include "recorder/device_memory/polling.h"
#include "recorder/devices/registry.h"
#include "recorder/events/heap.h"
#include "recorder/failures/failures.h"
#include "recorder/live/block_hash.h"
#include "recorder/state/counters.h"
#include "recorder/state/request.h"
#include "recorder/state/state.h"
#include "recorder/state/thread_state.h"

namespace oomrec::recorder {

using session::Device;
using session::g_session;

namespace {

void store_totals(const TorchReport& report) noexcept {
  if (!is_known_device(report.device)) return;
  Device& device = g_session.devices.at(report.device);
  device.torch_allocated_bytes.store(report.allocated_bytes, std::memory_order_relaxed);
  device.torch_reserved_bytes.store(report.reserved_bytes, std::memory_order_relaxed);
  device.torch_time_ns.store(system::monotonic_ns(), std::memory_order_relaxed);
}

}  // namespace

bool wants_torch_on_cpu() noexcept { return g_state.options.torch_cpu; }

void on_torch_memory(InHook hook, const TorchReport& report) noexcept {
  if (phase() == Phase::off) return;
  store_totals(report);
  const std::uint64_t key = live::torch_key(report.address);
  if (report.change > 0) {
    const auto bytes = static_cast<std::uint64_t>(report.change);
    on_allocate(hook, {Space::torch, report.api, key, bytes, bytes, report.device});
    on_torch_served(hook, report.device);
  } else if (report.change < 0) {
    on_free(hook, Space::torch, report.api, key, -static_cast<std::uint64_t>(report.change),
            report.device);
  }
}

void on_torch_failure(InHook hook, const TorchReport& report) noexcept {
  if (phase() == Phase::off) return;
  store_totals(report);
  if (confirm_failure(hook, report.device)) return;
  Request request{Space::torch, report.api, static_cast<std::uint64_t>(report.change)};
  request.device = report.device;
  on_failure(hook, request, 0, FailedBy::system);
}

using session::Device;
using session::g_session;

namespace {

// Keeps the space's totals equal to the sum over devices: adds what one of them has changed.
void follow(InHook hook, ThreadState& thread, std::uint64_t before, std::uint64_t now) noexcept {
  Delta delta;
  if (now > before) {
    delta.allocated_bytes = delta.usable_allocated_bytes = now - before;
  } else {
    delta.usable_freed_bytes = before - now;
  }
  count_quietly(thread, Space::torch, delta);
  publish(hook, thread, Space::torch);
}

}  // namespace

void on_framework_device(InHook hook, const FrameworkDevice& note) noexcept {
  if (phase() == Phase::off) return;
  DeviceIdentity identity{};
  identity.vendor = note.vendor;
  identity.ordinal = note.ordinal;
  std::memcpy(identity.name, note.name.data(), note.name.size());
  const std::uint32_t entry = describe_device(hook, identity);
  ThreadState* const thread = current_thread(hook);
  if (entry == 0 || thread == nullptr) return;
  Device& device = g_session.devices.at(entry);
  // What the framework has reserved is all that is known of this process' memory on the device.
  device.block_bytes.store(static_cast<std::int64_t>(note.reserved_bytes),
                           std::memory_order_relaxed);
  raise_to(device.peak_bytes, note.reserved_bytes);
  device.torch_reserved_bytes.store(note.reserved_bytes, std::memory_order_relaxed);
  const std::uint64_t before =
      device.torch_allocated_bytes.exchange(note.allocated_bytes, std::memory_order_relaxed);
  device.torch_time_ns.store(system::monotonic_ns(), std::memory_order_relaxed);
  follow(hook, *thread, before, note.allocated_bytes);
  on_device_polled(hook, entry, note.free_bytes, note.total_bytes);
}

}  // namespace oomrec::recorder

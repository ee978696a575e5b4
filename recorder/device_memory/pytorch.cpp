#include "recorder/device_memory/pytorch.h"

#include "common/system/files.h"
#include "recorder/devices/registry.h"
#include "recorder/events/heap.h"
#include "recorder/failures/failures.h"
#include "recorder/live/block_hash.h"
#include "recorder/state/request.h"
#include "recorder/state/state.h"

namespace oomrec::recorder {

using session::Device;
using session::g_session;

namespace {

void note_totals(const TorchReport& report) noexcept {
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
  note_totals(report);
  const std::uint64_t key = live::torch_key(report.address);
  if (report.change > 0) {
    const auto bytes = static_cast<std::uint64_t>(report.change);
    on_allocate(hook, {Space::torch, report.api, key, bytes, bytes, report.device});
    note_torch_served(hook, report.device);
  } else if (report.change < 0) {
    on_free(hook, Space::torch, report.api, key, -static_cast<std::uint64_t>(report.change),
            report.device);
  }
}

void on_torch_failure(InHook hook, const TorchReport& report) noexcept {
  if (phase() == Phase::off) return;
  note_totals(report);
  if (confirm_failure(hook, report.device)) return;
  Request request{Space::torch, report.api, static_cast<std::uint64_t>(report.change)};
  request.device = report.device;
  on_failure(hook, request, 0, FailedBy::system);
}

}  // namespace oomrec::recorder

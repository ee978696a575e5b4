// PyTorch's own blocks, in a space above that of the driver: what is allocated there lies inside
// what the driver gave, and the two are never added up. Sampled like the heap, its totals exact.
#include "recorder/device/devices.h"
#include "recorder/failures.h"

namespace oomrec::recorder {

using session::Device;
using session::g_session;

namespace {

void note_totals(const TorchReport& report) noexcept {
  if (report.device == 0 || report.device >= g_session.devices.size()) return;
  Device& device = g_session.devices.at(report.device);
  device.torch_allocated_bytes.store(report.allocated_bytes, std::memory_order_relaxed);
  device.torch_reserved_bytes.store(report.reserved_bytes, std::memory_order_relaxed);
  device.torch_time_ns.store(system::monotonic_ns(), std::memory_order_relaxed);
}

}  // namespace

void on_torch_memory(InHook hook, const TorchReport& report) noexcept {
  if (phase() == Phase::off || !devices_ready(hook)) return;
  note_totals(report);
  if (report.change > 0) {
    const auto bytes = static_cast<std::uint64_t>(report.change);
    on_allocate(hook, {Space::torch, report.api, report.address, bytes, bytes});
  } else if (report.change < 0) {
    on_free(hook, Space::torch, report.api, report.address,
            -static_cast<std::uint64_t>(report.change));
  }
}

void on_torch_failure(InHook hook, const TorchReport& report) noexcept {
  if (phase() == Phase::off || !devices_ready(hook)) return;
  note_totals(report);
  if (confirm_refusal(hook)) return;
  Request request{Space::torch, report.api, static_cast<std::uint64_t>(report.change)};
  request.device = report.device;
  on_failure(hook, request, 0, false);
}

}  // namespace oomrec::recorder

// PyTorch's own blocks, in a space above that of the driver: what is allocated there lies inside
// what the driver gave, and the two are never added up. Sampled like the heap, its totals exact.
#include "recorder/device/devices.h"
#include "recorder/failures.h"
#include "recorder/live/block_hash.h"

namespace oomrec::recorder {

using session::Device;
using session::FrameKind;
using session::g_session;
using session::TableId;

namespace {

constinit std::atomic<bool> g_met{false};

void note_totals(const TorchReport& report) noexcept {
  if (!is_known_device(report.device)) return;
  Device& device = g_session.devices.at(report.device);
  device.torch_allocated_bytes.store(report.allocated_bytes, std::memory_order_relaxed);
  device.torch_reserved_bytes.store(report.reserved_bytes, std::memory_order_relaxed);
  device.torch_time_ns.store(system::monotonic_ns(), std::memory_order_relaxed);
}

// libc10_cuda.so, libc10_hip.so: the allocators of GPUs.
bool is_allocator(std::string_view path) noexcept {
  const std::size_t slash = path.rfind('/');
  return path.substr(slash == path.npos ? 0 : slash + 1).starts_with("libc10_");
}

}  // namespace

void meet_torch() noexcept { g_met.store(true, std::memory_order_relaxed); }
bool wants_torch_on_cpu() noexcept { return g_state.options.torch_cpu; }

bool is_of_torch(std::uint32_t node) noexcept {
  if (!g_met.load(std::memory_order_relaxed)) return false;
  const session::View view = g_session.view();
  bool found = false;
  view.walk(node, [&](std::uint64_t frame) noexcept {
    session::Module module;
    found = found || (session::kind_of(frame) == FrameKind::native &&
                      view.read(TableId::modules, session::module_of(frame), module) &&
                      is_allocator(view.string(module.path)));
  });
  return found;
}

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
  if (confirm_refusal(hook, report.device)) return;
  Request request{Space::torch, report.api, static_cast<std::uint64_t>(report.change)};
  request.device = report.device;
  on_failure(hook, request, 0, false);
}

}  // namespace oomrec::recorder

#include "tools/recording/reading/devices.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "common/text/device_text.h"
#include "tools/base/text.h"

namespace oomrec::tools::recording {
namespace {

using session::Device;
using session::DeviceBlock;
using session::DeviceKind;
using session::TableId;

std::string label_of(const Device& device) {
  return fmt::format("{}:{}", text::vendor_name(device), device.ordinal);
}

std::string uuid_of(const Device& device) {
  constexpr session::u8 kNone[sizeof device.uuid] = {};
  if (std::memcmp(device.uuid, kNone, sizeof kNone) == 0) return {};
  char buffer[64];
  text::Text text{buffer};
  text::add_uuid(text, device);
  return std::string{text.view()};
}

DeviceFigures figures_of(const Device& device, std::uint32_t entry, std::uint64_t end_ns) {
  DeviceFigures figures;
  figures.entry = entry;
  figures.label = label_of(device);
  figures.vendor = text::vendor_of(device);
  figures.ordinal = device.ordinal;
  figures.uuid = uuid_of(device);
  figures.name = printable(text::name_of(device));
  figures.limit_bytes = device.limit_bytes;
  figures.held_bytes = device.counted_bytes();
  figures.block_bytes = Device::at_least_zero(device.block_bytes);
  figures.pool_used_bytes = Device::at_least_zero(device.pool_used_bytes);
  figures.pool_reserved_bytes = device.pool_reserved_bytes;
  figures.managed_bytes = Device::at_least_zero(device.managed_bytes);
  figures.peak_bytes = std::max<std::uint64_t>(device.peak_bytes, figures.held_bytes);
  if (const std::uint64_t polled_ns = device.polled_ns; polled_ns != 0) {
    const std::uint64_t age_ns = end_ns > polled_ns ? end_ns - polled_ns : 0;
    const std::uint64_t total = device.total_bytes;
    figures.driver_sample = {age_ns / 1'000'000, total - std::min(total, device.used_bytes()),
                             total};
  }
  if (device.torch_time_ns != 0)
    figures.torch = {device.torch_allocated_bytes, device.torch_reserved_bytes, {}};
  return figures;
}

bool is_memory_of_device(const DeviceBlock& block) {
  const auto kind = static_cast<DeviceKind>(block.kind);
  return block.key != 0 && (block.flags & session::kDeviceDormant) == 0 &&
         (kind == DeviceKind::block || kind == DeviceKind::pooled || kind == DeviceKind::managed);
}

}  // namespace

double DeviceFigures::Torch::fragmentation_ratio() const {
  if (reserved_bytes <= allocated_bytes) return 0;
  return static_cast<double>(reserved_bytes - allocated_bytes) /
         static_cast<double>(reserved_bytes);
}

std::uint64_t DeviceFigures::others_bytes() const {
  session::DeviceEvidence evidence{};
  if (driver_sample) {
    evidence.free_bytes = driver_sample->free_bytes;
    evidence.total_bytes = driver_sample->total_bytes;
  }
  evidence.counted_bytes = held_bytes;
  evidence.managed_bytes = managed_bytes;
  return text::used_by_others(evidence);
}

std::vector<DeviceFigures> devices_of(const Recording& recording, std::uint32_t failure) {
  const session::View& view = recording.view();
  const std::uint64_t end_ns = recording.end_ns();
  session::Failure failed{};
  if (failure != 0) view.read(TableId::failures, failure, failed);
  std::vector<DeviceFigures> rows;
  Device device{};
  for (std::uint32_t entry = 1; entry < view.count(TableId::devices); ++entry) {
    if (!view.read(TableId::devices, entry, device) || device.vendor >= session::kVendors) continue;
    rows.push_back(figures_of(device, entry, end_ns));
    const session::DeviceEvidence& evidence = failed.device;
    if (evidence.device == entry && rows.back().torch &&
        evidence.torch_largest_free_bytes != session::kUnlimited)
      rows.back().torch->largest_free_bytes = evidence.torch_largest_free_bytes;
  }
  return rows;
}

std::string device_label(const Recording& recording, std::uint32_t entry) {
  Device device{};
  return text::read_device(recording.view(), entry, device) ? label_of(device) : std::string{};
}

std::vector<HolderFigures> holders_on(const Recording& recording, std::uint32_t entry) {
  const session::View& view = recording.view();
  std::unordered_map<std::uint32_t, HolderFigures> by_holder;
  session::Holder holder{};
  for (const auto& block : session::entries<DeviceBlock>(view, TableId::device_blocks)) {
    if (block.device != entry || !is_memory_of_device(block)) continue;
    HolderFigures& row = by_holder[block.holder];
    if (row.live_count == 0) {
      row.entry = block.holder;
      const bool is_hip = block.vendor == static_cast<std::uint8_t>(session::Vendor::hip);
      row.space = is_hip ? Space::hip : Space::cuda;
      if (block.holder != 0 && view.read(TableId::holders, block.holder, holder)) {
        row.node = holder.node;
        row.api = static_cast<Api>(holder.api);
      }
    }
    row.live_bytes += block.bytes;
    row.live_count += 1;
  }
  std::vector<HolderFigures> rows;
  rows.reserve(by_holder.size());
  for (const auto& [number, row] : by_holder) rows.push_back(row);
  return rows;
}

}  // namespace oomrec::tools::recording

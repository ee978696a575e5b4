#include "tools/bundles/ranks/combined_devices.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <tuple>

#include "common/text/device_text.h"

namespace oomrec::tools::bundles {
namespace {

using session::Device;
using session::DeviceBlock;
using session::TableId;

// Identifies a device: its UUID, else host and number.
using Key = std::tuple<std::uint8_t, std::string, int>;

Key key_of(const Device& device, const recording::Recording& recording) {
  const std::string uuid{reinterpret_cast<const char*>(device.uuid), sizeof device.uuid};
  const bool has_uuid = uuid.find_first_not_of('\0') != std::string::npos;
  return has_uuid ? Key{device.vendor, uuid, 0}
                  : Key{device.vendor, host_of(recording), device.ordinal};
}

// For a device that several ranks share. Other fields keep the values of the first rank.
static_assert(sizeof(Device) == 192, "add the new figures up, too");

void add_figures(Device& sum, const Device& part) {
  const auto add = [](auto& to, const auto& from) { to = to.load() + from.load(); };
  sum.limit_bytes = std::max(sum.limit_bytes, part.limit_bytes);
  add(sum.block_bytes, part.block_bytes);
  add(sum.pool_used_bytes, part.pool_used_bytes);
  add(sum.pool_reserved_bytes, part.pool_reserved_bytes);
  add(sum.managed_bytes, part.managed_bytes);
  add(sum.peak_bytes, part.peak_bytes);
  add(sum.torch_allocated_bytes, part.torch_allocated_bytes);
  add(sum.torch_reserved_bytes, part.torch_reserved_bytes);
  add(sum.polled_counted_bytes, part.polled_counted_bytes);
}

class Devices {
 public:
  void add(RankPart& part) {
    part.devices.assign(part.view().count(TableId::devices), 0);
    Device device{};
    for (std::uint32_t i = 1; i < part.devices.size(); ++i) {
      if (!part.view().read(TableId::devices, i, device) || device.vendor >= session::kVendors)
        continue;
      if (device.polled_ns != 0) device.polled_ns = part.time(device.polled_ns);
      if (device.torch_time_ns != 0) device.torch_time_ns = part.time(device.torch_time_ns);
      const auto [at, is_new] = index_.try_emplace(key_of(device, part.recording()), all_.size());
      is_new ? add_new(device, part) : merge(all_[at->second], device);
      part.devices[i] = static_cast<std::uint32_t>(at->second) + 1;
    }
  }

  void add_to(recording::Image& image) const {
    for (const Device& device : all_) image.add(TableId::devices, device);
  }

 private:
  void add_new(const Device& device, const RankPart& part) {
    Device& added = all_.emplace_back();
    std::memcpy(static_cast<void*>(&added), &device, sizeof added);
    std::set<int>& taken = taken_[device.vendor];
    while (!taken.insert(added.ordinal).second) ++added.ordinal;
    if (added.ordinal == device.ordinal) return;
    const std::string name =
        fmt::format("{}:{} of rank {}, {}", text::vendor_name(device), device.ordinal,
                    part.rank.identity.rank, text::name_of(device));
    std::memset(added.name, 0, sizeof added.name);
    std::memcpy(added.name, name.data(), std::min(name.size(), sizeof added.name - 1));
  }

  // Free and total bytes come from the rank that polled the driver last.
  static void merge(Device& merged, const Device& device) {
    if (device.polled_ns > merged.polled_ns) {
      merged.polled_ns = device.polled_ns.load();
      merged.free_bytes = device.free_bytes.load();
      merged.total_bytes = device.total_bytes.load();
    }
    merged.torch_time_ns = std::max(merged.torch_time_ns.load(), device.torch_time_ns.load());
    add_figures(merged, device);
  }

  std::deque<Device> all_;
  std::map<Key, std::size_t> index_;
  std::map<std::uint8_t, std::set<int>> taken_;  // ordinals, by vendor
};

}  // namespace

void add_combined_devices(recording::Image& image, std::deque<RankPart>& parts) {
  Devices devices;
  for (RankPart& part : parts) devices.add(part);
  devices.add_to(image);
}

void add_combined_device_blocks(recording::Image& image, const std::deque<RankPart>& parts) {
  DeviceBlock block{};
  for (const RankPart& part : parts) {
    for (std::uint64_t i = 1; i < part.view().count(TableId::device_blocks); ++i) {
      if (!part.view().read(TableId::device_blocks, i, block) || block.key == 0) continue;
      block.holder = RankPart::at(part.holders, block.holder);
      block.device = RankPart::at(part.devices, block.device);
      const std::uint64_t birth_ns =
          part.recording().header().start_monotonic_ns + block.birth_s * 1'000'000'000ULL;
      block.birth_s = static_cast<std::uint32_t>(
          (std::max(part.time(birth_ns), kCombinedStartNs) - kCombinedStartNs) / 1'000'000'000);
      image.add(TableId::device_blocks, block);
    }
  }
}

}  // namespace oomrec::tools::bundles

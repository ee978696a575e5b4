#include "tools/bundles/ranks/combined_figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <tuple>

#include "common/text/device_text.h"
#include "tools/recording/reading/checkpoints.h"
#include "tools/recording/reading/timeline.h"

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
  for (const RankPart& part : parts) {
    for (auto& block : session::entries<DeviceBlock>(part.view(), TableId::device_blocks)) {
      if (block.key == 0) continue;
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

namespace {

constexpr std::size_t kMostPoints = 1200;

// A rank's entries over time, on the job's clock.
template <class Entry>
struct Series {
  const RankPart* part;
  std::vector<Entry> entries;  // in order of time

  std::uint64_t time(const Entry& entry) const { return part->time(entry.time_ns); }
};

// The distinct times of all series, thinned evenly to at most `most`.
template <class Entry>
std::vector<std::uint64_t> moments_of(const std::vector<Series<Entry>>& all, std::size_t most) {
  std::vector<std::uint64_t> times;
  for (const Series<Entry>& series : all)
    for (const Entry& entry : series.entries) times.push_back(series.time(entry));
  std::ranges::sort(times);
  times.erase(std::unique(times.begin(), times.end()), times.end());
  if (times.size() <= most) return times;
  std::vector<std::uint64_t> kept;
  for (std::size_t i = 0; i < most; ++i) kept.push_back(times[i * (times.size() - 1) / (most - 1)]);
  return kept;
}

// Calls visit(time, latest) for each time. `latest`: each series' latest entry, null before its
// first.
template <class Entry, class Visit>
void walk_through(const std::vector<Series<Entry>>& all, const std::vector<std::uint64_t>& times,
                  Visit&& visit) {
  std::vector<std::size_t> next(all.size());
  std::vector<const Entry*> latest(all.size());
  for (const std::uint64_t time : times) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      const std::vector<Entry>& entries = all[i].entries;
      while (next[i] < entries.size() && all[i].time(entries[next[i]]) <= time)
        latest[i] = &entries[next[i]++];
    }
    visit(time, latest);
  }
}

static_assert(sizeof(session::DevicePoint::Figures) == 48 &&
                  sizeof(session::Point) == 16 + 8 * session::kLaneSpaces,
              "add the new figures up, too");

void add_device(session::DevicePoint& point, std::uint32_t device,
                const recording::DeviceMoment& moment) {
  if (device == 0 || device > session::kPointDevices) return;
  auto& figures = point.devices[device - 1];
  figures.known = 1;
  figures.counted_bytes += moment.counted_bytes;
  // Figures of the whole device, the same for every rank.
  figures.used_bytes = std::max(figures.used_bytes, moment.used_bytes);
  figures.total_bytes = std::max(figures.total_bytes, moment.total_bytes);
  figures.torch_allocated_bytes += moment.torch_allocated_bytes;
  figures.torch_reserved_bytes += moment.torch_reserved_bytes;
}

void add_points(recording::Image& image, const std::deque<RankPart>& parts) {
  std::vector<Series<recording::Moment>> all;
  all.reserve(parts.size());
  for (const RankPart& part : parts)
    all.push_back({&part, recording::timeline_of(part.recording()).moments});
  std::array<std::uint64_t, kSpaceCount> peaks{};
  walk_through(all, moments_of(all, kMostPoints),
               [&](std::uint64_t time, const std::vector<const recording::Moment*>& latest) {
                 session::Point point{};
                 session::DevicePoint devices{};
                 point.time_ns = devices.time_ns = time;
                 bool has_devices = false;
                 for (std::size_t i = 0; i < latest.size(); ++i) {
                   if (latest[i] == nullptr) continue;
                   point.rss_bytes += latest[i]->rss_bytes;
                   for (std::size_t space = 0; space < kSpaceCount; ++space)
                     point.live_bytes[space] += latest[i]->live_bytes[space];
                   for (const recording::DeviceMoment& moment : latest[i]->devices) {
                     add_device(devices, RankPart::at(parts[i].devices, moment.device), moment);
                     has_devices = true;
                   }
                 }
                 for (std::size_t space = 0; space < kSpaceCount; ++space)
                   peaks[space] = std::max(peaks[space], point.live_bytes[space]);
                 image.add(TableId::points, point);
                 if (has_devices) image.add(TableId::device_points, devices);
               });
  for (std::size_t space = 0; space < kSpaceCount; ++space)
    image.header().spaces[space].peak_bytes = peaks[space];
}

void add_checkpoint(recording::Image& image, std::uint64_t time, const std::deque<RankPart>& parts,
                    const std::vector<const recording::Checkpoint*>& latest) {
  session::Checkpoint checkpoint{};
  std::vector<recording::CheckpointRow> rows;
  for (std::size_t i = 0; i < latest.size(); ++i) {
    if (latest[i] == nullptr) continue;
    for (std::size_t space = 0; space < kSpaceCount; ++space)
      checkpoint.live_bytes[space] += latest[i]->live_bytes[space];
    const std::size_t most =
        std::min<std::size_t>(latest[i]->largest.size(), session::kCheckpointRows);
    for (std::size_t row = 0; row < most; ++row)
      rows.push_back({RankPart::at(parts[i].holders, latest[i]->largest[row].holder),
                      latest[i]->largest[row].live_bytes});
  }
  const std::size_t kept = std::min<std::size_t>(rows.size(), session::kCheckpointRows);
  std::partial_sort(rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(kept), rows.end(),
                    [](const recording::CheckpointRow& a, const recording::CheckpointRow& b) {
                      return a.live_bytes != b.live_bytes ? a.live_bytes > b.live_bytes
                                                          : a.holder < b.holder;
                    });
  checkpoint.time_ns = time;
  checkpoint.rows = static_cast<std::uint32_t>(kept);
  const auto time_ms = static_cast<std::uint32_t>((time - kCombinedStartNs) / 1'000'000);
  for (std::size_t row = 0; row < kept; ++row) {
    const std::uint32_t entry =
        image.add(TableId::checkpoint_rows,
                  session::CheckpointRow{rows[row].holder, time_ms, rows[row].live_bytes});
    if (row == 0) checkpoint.first_row = entry;
  }
  image.add(TableId::checkpoints, checkpoint);
}

void add_checkpoints(recording::Image& image, const std::deque<RankPart>& parts) {
  std::vector<Series<recording::Checkpoint>> all;
  all.reserve(parts.size());
  for (const RankPart& part : parts)
    all.push_back({&part, recording::checkpoints_of(part.recording())});
  walk_through(all, moments_of(all, session::kCheckpoints),
               [&](std::uint64_t time, const std::vector<const recording::Checkpoint*>& latest) {
                 add_checkpoint(image, time, parts, latest);
               });
}

}  // namespace

void add_combined_over_time(recording::Image& image, const std::deque<RankPart>& parts) {
  add_points(image, parts);
  add_checkpoints(image, parts);
}

}  // namespace oomrec::tools::bundles

#include "tools/bundles/ranks/combined_over_time.h"

#include <algorithm>
#include <array>

#include "tools/recording/reading/checkpoints.h"
#include "tools/recording/reading/timeline.h"

namespace oomrec::tools::bundles {
namespace {

using session::TableId;

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
  std::sort(times.begin(), times.end());
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

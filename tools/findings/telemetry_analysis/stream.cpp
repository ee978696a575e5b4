#include "tools/findings/telemetry_analysis/stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <span>
#include <tuple>

namespace oomrec::tools::findings {
namespace {

// Events that are not samples: they repeat the figures of one.
constexpr std::array<std::string_view, 6> kRemarks = {"warning", "critical", "error",
                                                      "peak",    "mark",     "cleanup"};

bool is_sample(const formats::TelemetryEvent& event) {
  return std::ranges::find(kRemarks, event.event_type) == kRemarks.end();
}

std::optional<double> figure(const std::optional<std::int64_t>& value) {
  return value ? std::optional{static_cast<double>(*value)} : std::nullopt;
}

}  // namespace

std::string Stream::name() const {
  const std::string who = rank       ? fmt::format("rank {}", *rank)
                          : pid >= 0 ? fmt::format("{}", pid)
                                     : std::string{"memory"};
  return fmt::format("{} on {}", who,
                     device_id < 0 ? std::string{"the host"} : fmt::format("device {}", device_id));
}

std::vector<Stream> streams_of(const std::vector<formats::TelemetryEvent>& events) {
  std::map<std::tuple<std::string, std::int64_t, std::int64_t, std::int64_t>, Stream> found;
  for (const formats::TelemetryEvent& event : events) {
    // Writers give a process outside a job rank 0 of 1, too: its process id says more.
    const auto rank = event.world_size == 1 ? std::nullopt : event.rank;
    Stream& stream = found[{event.host, rank.value_or(-1), event.pid, event.device_id}];
    stream.host = event.host;
    stream.pid = event.pid;
    stream.device_id = event.device_id;
    stream.rank = rank;
    stream.oom_events += event.event_type == "error" || event.event_type == "oom";
    stream.events.push_back(event);
  }
  std::vector<Stream> streams;
  streams.reserve(found.size());
  for (auto& [key, stream] : found) streams.push_back(std::move(stream));
  return streams;
}

double StreamFindings::growth_bytes() const {
  if (allocated.size() < kFewestOfLeak)
    return allocated.size() != 0 ? allocated.values.back() - allocated.values.front() : 0;
  const std::span<const double> values{allocated.values};
  return mean_of(values.last(5)) - mean_of(values.first(5));
}

double StreamFindings::seconds() const {
  return allocated.size() != 0 ? allocated.seconds.back() - allocated.seconds.front() : 0;
}

StreamFindings findings_of(const Stream& stream, std::int64_t begin_ns) {
  StreamFindings found;
  for (const formats::TelemetryEvent& event : stream.events) {
    if (!is_sample(event)) continue;
    // Unsigned: the times in a file may be further apart than a signed difference can say.
    const std::uint64_t elapsed_ns =
        static_cast<std::uint64_t>(event.timestamp_ns) - static_cast<std::uint64_t>(begin_ns);
    const double seconds = static_cast<double>(elapsed_ns) / 1e9;
    const auto allocated = static_cast<double>(event.allocated_bytes);
    const auto used = static_cast<double>(event.used_bytes);
    found.allocated.add(seconds, allocated);
    found.held.push_back({seconds, allocated, static_cast<double>(event.reserved_bytes), used,
                          figure(event.total_bytes), figure(event.inactive_bytes)});
    if (event.total_bytes && *event.total_bytes > 0)
      found.utilization =
          std::max(found.utilization.value_or(0), used / static_cast<double>(*event.total_bytes));
  }
  const Series& allocated = found.allocated;
  if (allocated.size() == 0) return found;
  found.mean_bytes = mean_of(allocated.values);
  found.peak_bytes = *std::ranges::max_element(allocated.values);
  found.leak_signs = leak_signs_of(allocated);
  found.spikes = spikes_of(allocated);
  found.steps = steps_of(allocated);
  found.period = period_of(allocated);
  found.trend = trend_of(allocated);
  found.fragmentation = fragmentation_over(found.held);
  found.gap = hidden_gap_of(found.held);
  return found;
}

std::optional<FirstRank> first_rank_of(const std::vector<Stream>& streams,
                                       const std::vector<StreamFindings>& findings) {
  std::optional<FirstRank> first;
  std::size_t ranks = 0;
  for (std::size_t i = 0; i < streams.size(); ++i) {
    if (!streams[i].rank) continue;
    ++ranks;
    const auto began = growth_began_at(findings[i].allocated);
    if (began && (!first || *began < first->at_seconds)) first = {*streams[i].rank, *began};
  }
  return ranks >= 2 ? first : std::nullopt;
}

}  // namespace oomrec::tools::findings

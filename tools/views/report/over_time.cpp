#include "tools/views/report/over_time.h"

#include <fmt/format.h>

#include <cmath>
#include <map>

#include "tools/base/text.h"
#include "tools/bundles/ranks/merged.h"
#include "tools/recording/reading/checkpoints.h"
#include "tools/recording/reading/devices.h"
#include "tools/recording/reading/timeline.h"

namespace oomrec::tools::views {
namespace {

using session::TableId;

// Converts a time of the session's clock to the page's milliseconds since 1970.
double ms_of(const recording::Recording& recording, std::uint64_t time_ns) {
  return static_cast<double>(recording.realtime_of(time_ns)) / 1e6;
}

bool is_used(const recording::Recording& recording, std::size_t space) {
  const recording::SpaceTotals totals = recording.totals(static_cast<Space>(space));
  return totals.allocated_count != 0 || totals.live_bytes != 0;
}

template <class Items, class Value>
void add_column(Container& container, const std::string& name, const Items& items, Value&& value) {
  std::vector<double> values;
  values.reserve(items.size());
  for (const auto& item : items) values.push_back(static_cast<double>(value(item)));
  container.add(name, values);
}

// Adds a column for each space that was used, such as "t_live_3".
template <class Items>
void add_spaces(Container& container, const recording::Recording& recording, const char* prefix,
                const Items& items) {
  for (std::size_t space = 0; space < kSpaceCount; ++space) {
    if (!is_used(recording, space)) continue;
    add_column(container, fmt::format("{}{}", prefix, space), items,
               [&](const auto& item) { return item.live_bytes[space]; });
  }
}

void add_moments(Container& container, const recording::Recording& recording,
                 const recording::Timeline& timeline) {
  const std::vector<recording::Moment>& moments = timeline.moments;
  add_column(container, "t_time", moments,
             [&](const recording::Moment& moment) { return ms_of(recording, moment.time_ns); });
  add_column(container, "t_rss", moments,
             [](const recording::Moment& moment) { return moment.rss_bytes; });
  add_spaces(container, recording, "t_live_", moments);
  const std::vector<recording::DeviceFigures> devices = recording::devices_of(recording, 0);
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const auto figure = [&](const char* name, std::uint64_t recording::DeviceMoment::*member) {
      add_column(container, fmt::format("t_device_{}_{}", i, name), moments,
                 [&](const recording::Moment& moment) -> std::uint64_t {
                   for (const recording::DeviceMoment& device : moment.devices)
                     if (device.device == devices[i].entry) return device.*member;
                   return 0;
                 });
    };
    figure("counted", &recording::DeviceMoment::counted_bytes);
    figure("used", &recording::DeviceMoment::used_bytes);
    figure("total", &recording::DeviceMoment::total_bytes);
    figure("torch_allocated", &recording::DeviceMoment::torch_allocated_bytes);
    figure("torch_reserved", &recording::DeviceMoment::torch_reserved_bytes);
  }
}

void add_checkpoints(Container& container, const recording::Recording& recording,
                     const ReportRows& rows) {
  const std::vector<recording::Checkpoint> checkpoints = recording::checkpoints_of(recording);
  add_column(container, "c_time", checkpoints,
             [&](const recording::Checkpoint& at) { return ms_of(recording, at.time_ns); });
  add_spaces(container, recording, "c_total_", checkpoints);
  std::vector<std::uint32_t> first{0}, row_numbers;
  std::vector<std::uint8_t> full;
  std::vector<double> bytes;
  for (const recording::Checkpoint& checkpoint : checkpoints) {
    std::map<std::uint32_t, std::uint64_t> by_row;  // several holders may share a row
    for (const recording::CheckpointRow& entry : checkpoint.largest)
      if (const auto row = rows.row_of(entry.holder)) by_row[*row] += entry.live_bytes;
    for (const auto& [row, held_bytes] : by_row) {
      row_numbers.push_back(row);
      bytes.push_back(static_cast<double>(held_bytes));
    }
    first.push_back(static_cast<std::uint32_t>(row_numbers.size()));
    const bool is_last = &checkpoint == &checkpoints.back();  // always has all holders
    full.push_back(!is_last && checkpoint.largest.size() >= session::kCheckpointRows ? 1 : 0);
  }
  container.add("c_first", first);
  container.add("c_row", row_numbers);
  container.add("c_bytes", bytes);
  container.add("c_full", full);
}

Json refusals_json(const recording::Recording& recording, const recording::Timeline& timeline,
                   NamedStacks& stacks) {
  Json refusals = Json::array();
  session::Failure failure{};
  for (const recording::FailureMoment& moment : timeline.failures) {
    if (!recording.view().read(TableId::failures, moment.failure, failure)) continue;
    refusals.push_back({{"time_ms", ms_of(recording, moment.time_ns)},
                        {"bytes", failure.bytes},
                        {"api", name_of(static_cast<Api>(failure.api))},
                        {"space", name_of(static_cast<Space>(failure.space))},
                        {"stack", stacks.of_node(failure.node).node}});
  }
  return refusals;
}

Json limits_json(const recording::Recording& recording, const recording::Timeline& timeline) {
  Json limits = Json::array();
  for (const recording::LimitLine& limit : timeline.limits)
    limits.push_back({{"name", printable(limit.name)},
                      {"bytes", limit.bytes},
                      {"device", text_or_null(recording::device_label(recording, limit.device))}});
  return limits;
}

Json marks_json(const recording::Recording& recording, const recording::Timeline& timeline) {
  Json marks = Json::array();
  for (const recording::TimeMark& mark : timeline.marks)
    marks.push_back(
        {{"time_ms", ms_of(recording, mark.time_ns)}, {"text", clip(printable(mark.text), 200)}});
  return marks;
}

// For each of `times`, the bytes held at the last moment that is not later; 0 before the first.
std::vector<double> held_at(const std::vector<recording::Moment>& moments,
                            const recording::Recording& recording, std::int64_t shift_ns,
                            const std::vector<std::uint64_t>& times) {
  std::vector<double> values;
  values.reserve(times.size());
  std::size_t next = 0;
  double held = 0;
  for (const std::uint64_t time : times) {
    while (next < moments.size() &&
           recording.realtime_of(moments[next].time_ns) + static_cast<std::uint64_t>(shift_ns) <=
               time) {
      std::uint64_t sum = 0;
      for (const Space space : recording::spaces_that_add_up())
        sum += moments[next].live_bytes[static_cast<std::size_t>(space)];
      held = static_cast<double>(sum);
      ++next;
    }
    values.push_back(held);
  }
  return values;
}

}  // namespace

void add_ranks_over_time(const bundles::Source& source, Container& container) {
  constexpr std::size_t kMostRanks = 64;
  if (!source.is_job()) return;
  std::vector<std::uint64_t> times;
  for (const recording::Moment& moment : recording::timeline_of(*source.recording).moments)
    times.push_back(source.recording->realtime_of(moment.time_ns));
  std::size_t rank = 0;
  bundles::for_each_rank(source, [&](const Json& row, const bundles::Source& own) {
    if (rank >= kMostRanks) return;
    const Json& shift = member(row, "shift_seconds");
    const double shift_ns = shift.is_number() ? shift.get<double>() * 1e9 : 0;
    container.add(fmt::format("t_rank_{}", number_of(row, "rank").value_or(0)),
                  held_at(recording::timeline_of(*own.recording).moments, *own.recording,
                          std::llround(shift_ns), times));
    ++rank;
  });
}

void add_over_time(const recording::Recording& recording, NamedStacks& stacks,
                   const ReportRows& rows, Container& container, Json& json) {
  const recording::Timeline timeline = recording::timeline_of(recording);
  add_moments(container, recording, timeline);
  add_checkpoints(container, recording, rows);
  json["limits"] = limits_json(recording, timeline);
  json["marks"] = marks_json(recording, timeline);
  json["refusals"] = refusals_json(recording, timeline, stacks);
}

}  // namespace oomrec::tools::views

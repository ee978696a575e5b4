#include "tools/views/plot/timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "tools/base/text.h"
#include "tools/recording/reading/devices.h"

namespace oomrec::tools::views {
namespace {

constexpr std::size_t kMostEvents = 20;  // lines of each kind

class Page {
 public:
  Page(const recording::Timeline& timeline, const recording::Recording& recording, Size size,
       Charset charset)
      : timeline_(timeline), recording_(recording), size_(size), charset_(charset) {}

  Picture picture() {
    add_heading("memory of the process");
    add(host_chart(timeline_, recording_));
    for (const std::uint32_t device : devices_in(timeline_)) {
      picture_.emplace_back();
      add_heading(recording::device_label(recording_, device));
      add(device_chart(timeline_, recording_, device));
    }
    add_failures();
    add_marks();
    return std::move(picture_);
  }

 private:
  void add_heading(const std::string& text) { picture_.emplace_back(text, Colour::bold); }

  void add(const Chart& chart) {
    for (Line& line : lines_of(chart, size_, charset_)) picture_.push_back(std::move(line));
    picture_.push_back(legend_of(chart));
  }

  std::string when(std::uint64_t time_ns) const {
    const std::uint64_t start = recording_.header().start_monotonic_ns;
    const std::uint64_t range_ns = recording_.end_ns() - start;
    return fmt::format("{:>9}  {}", axis_text(time_ns > start ? time_ns - start : 0, range_ns),
                       time_text(recording_.realtime_of(time_ns)));
  }

  // Lines of the last events of a kind.
  template <class Event, class Describe>
  void add_events(const std::vector<Event>& events, std::string_view sign, std::string_view heading,
                  Colour colour, Describe describe) {
    if (events.empty()) return;
    picture_.emplace_back();
    add_heading(fmt::format("{} {}", sign, heading));
    const std::size_t first = events.size() > kMostEvents ? events.size() - kMostEvents : 0;
    if (first != 0) picture_.emplace_back(fmt::format("  … {} before", first), Colour::dim);
    for (std::size_t i = first; i < events.size(); ++i) {
      Line line{fmt::format("  {}  ", when(events[i].time_ns)), Colour::dim};
      picture_.push_back(line.add(describe(events[i]), colour));
    }
  }

  void add_failures() {
    add_events(timeline_.failures, kFailureSign, "refused", Colour::red,
               [this](const recording::FailureMoment& moment) {
                 session::Failure failure{};
                 recording_.view().read(session::TableId::failures, moment.failure, failure);
                 return fmt::format("{} of {}", name_of(static_cast<Api>(failure.api)),
                                    size_text(failure.bytes));
               });
  }

  void add_marks() {
    add_events(timeline_.marks, kMarkSign, "marks", Colour::plain,
               [](const recording::TimeMark& mark) { return printable(mark.text); });
    if (timeline_.dropped_marks != 0) {
      picture_.emplace_back(
          fmt::format("  and {}", plural(timeline_.dropped_marks,
                                         "more mark that did not fit into the recording",
                                         "more marks that did not fit into the recording")),
          Colour::dim);
    }
  }

  const recording::Timeline& timeline_;
  const recording::Recording& recording_;
  const Size size_;
  const Charset charset_;
  Picture picture_;
};

}  // namespace

Picture timeline_picture(const recording::Timeline& timeline, const recording::Recording& recording,
                         Size size, Charset charset) {
  return Page{timeline, recording, size, charset}.picture();
}

namespace {

// The part that all charts of a time line share: begin, end and events.
Chart empty_chart(const recording::Timeline& timeline, const recording::Recording& recording) {
  Chart chart;
  chart.begin_ns = recording.header().start_monotonic_ns;
  chart.end_ns = std::max(chart.begin_ns, timeline.moments.back().time_ns);
  for (const recording::FailureMoment& moment : timeline.failures)
    chart.events.push_back({moment.time_ns, kFailureSign, Colour::red});
  for (const recording::TimeMark& mark : timeline.marks)
    chart.events.push_back({mark.time_ns, kMarkSign, Colour::cyan});
  return chart;
}

void add_limits(Chart& chart, const recording::Timeline& timeline, std::uint32_t device) {
  for (const recording::LimitLine& limit : timeline.limits)
    if (limit.device == device) chart.limits.push_back({limit.name, limit.bytes});
}

}  // namespace

Chart host_chart(const recording::Timeline& timeline, const recording::Recording& recording) {
  Chart chart = empty_chart(timeline, recording);
  Curve rss{"RSS", Colour::cyan, true, {}};
  Curve live{"live", Colour::yellow, false, {}};
  for (const recording::Moment& moment : timeline.moments) {
    live.points.emplace_back(moment.time_ns, recording::host_bytes_of(moment));
    if (moment.rss_bytes != 0) rss.points.emplace_back(moment.time_ns, moment.rss_bytes);
  }
  chart.curves = {std::move(rss), std::move(live)};
  add_limits(chart, timeline, 0);
  return chart;
}

Chart device_chart(const recording::Timeline& timeline, const recording::Recording& recording,
                   std::uint32_t device) {
  Chart chart = empty_chart(timeline, recording);
  Curve used{"all processes", Colour::cyan, true, {}};
  Curve counted{"this process", Colour::yellow, false, {}};
  std::uint64_t total_bytes = 0;
  for (const recording::Moment& moment : timeline.moments) {
    for (const recording::DeviceMoment& figures : moment.devices) {
      if (figures.device != device) continue;
      counted.points.emplace_back(moment.time_ns, figures.counted_bytes);
      if (figures.total_bytes != 0) used.points.emplace_back(moment.time_ns, figures.used_bytes);
      total_bytes = std::max(total_bytes, figures.total_bytes);
    }
  }
  chart.curves = {std::move(used), std::move(counted)};
  add_limits(chart, timeline, device);
  if (total_bytes != 0) chart.limits.push_back({"device", total_bytes});
  return chart;
}

std::vector<std::uint32_t> devices_in(const recording::Timeline& timeline) {
  std::vector<std::uint32_t> devices;
  for (const recording::Moment& moment : timeline.moments)
    for (const recording::DeviceMoment& device : moment.devices)
      if (std::ranges::find(devices, device.device) == devices.end())
        devices.push_back(device.device);
  return devices;
}

namespace {

// Seconds since 1970, as in events.json.
double timestamp_of(std::uint64_t time_ns, const recording::Recording& recording) {
  const std::uint64_t milliseconds = recording.realtime_of(time_ns) / 1'000'000;
  return static_cast<double>(milliseconds) / 1000;
}

Json device_json(const recording::DeviceMoment& device, const recording::Recording& recording) {
  const bool reported = device.total_bytes != 0;  // by the driver
  return {
      {"device", recording::device_label(recording, device.device)},
      {"counted_bytes", device.counted_bytes},
      {"used_bytes", reported ? Json(device.used_bytes) : Json(nullptr)},
      {"total_bytes", reported ? Json(device.total_bytes) : Json(nullptr)},
      {"torch_allocated_bytes", device.torch_allocated_bytes},
      {"torch_reserved_bytes", device.torch_reserved_bytes},
  };
}

}  // namespace

Json moment_json(const recording::Moment& moment, const recording::Recording& recording) {
  Json live = Json::object();
  for (std::size_t i = 0; i < kSpaceCount; ++i)
    if (const auto space = static_cast<Space>(i); has_totals(space))
      live[std::string{name_of(space)}] = moment.live_bytes[i];
  Json devices = Json::array();
  for (const recording::DeviceMoment& device : moment.devices)
    devices.push_back(device_json(device, recording));
  return {
      {"timestamp", timestamp_of(moment.time_ns, recording)},
      {"rss_bytes", number_or_null(moment.rss_bytes)},
      {"live_bytes", live},
      {"devices", devices},
  };
}

Json limits_json(const recording::Timeline& timeline, const recording::Recording& recording) {
  Json limits = Json::array();
  for (const recording::LimitLine& limit : timeline.limits) {
    limits.push_back({{"name", limit.name},
                      {"bytes", limit.bytes},
                      {"device", text_or_null(recording::device_label(recording, limit.device))}});
  }
  return limits;
}

Json timeline_json(const recording::Timeline& timeline, const recording::Recording& recording) {
  Json moments = Json::array();
  for (const recording::Moment& moment : timeline.moments)
    moments.push_back(moment_json(moment, recording));
  Json marks = Json::array();
  for (const recording::TimeMark& mark : timeline.marks) {
    marks.push_back({{"timestamp", timestamp_of(mark.time_ns, recording)}, {"text", mark.text}});
  }
  Json refusals = Json::array();
  session::Failure failure{};
  for (const recording::FailureMoment& moment : timeline.failures) {
    if (!recording.view().read(session::TableId::failures, moment.failure, failure)) continue;
    refusals.push_back({{"timestamp", timestamp_of(moment.time_ns, recording)},
                        {"api", name_of(static_cast<Api>(failure.api))},
                        {"bytes", failure.bytes}});
  }
  return {
      {"schema_version", 1},
      {"start_timestamp", timestamp_of(recording.header().start_monotonic_ns, recording)},
      {"moments", moments},
      {"marks", marks},
      {"dropped_marks", timeline.dropped_marks},
      {"refusals", refusals},
      {"limits", limits_json(timeline, recording)},
  };
}

}  // namespace oomrec::tools::views

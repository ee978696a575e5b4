#include "tools/formats/telemetry/recorded.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "common/bundle/accounts.h"
#include "tools/base/text.h"

namespace oomrec::tools::formats {
namespace {

using session::TableId;

constexpr std::size_t kLongestContext = 400;

// The mean interval of the samples. The recorder takes them on activity, at most ten a second.
std::int64_t interval_ms(const std::vector<recording::Moment>& moments) {
  if (moments.size() < 2) return 0;
  const std::uint64_t span_ns = moments.back().time_ns - moments.front().time_ns;
  return static_cast<std::int64_t>(span_ns / 1'000'000 / (moments.size() - 1));
}

const recording::Moment* last_before(const std::vector<recording::Moment>& moments,
                                     std::uint64_t time_ns) {
  if (moments.empty()) return nullptr;
  const auto after = std::ranges::upper_bound(moments, time_ns, {}, &recording::Moment::time_ns);
  return after == moments.begin() ? &*after : &*std::prev(after);
}

class OverTime {
 public:
  explicit OverTime(const recording::Recording& recording)
      : recording_(recording),
        view_(recording.view()),
        timeline_(recording::timeline_of(recording)),
        template_(event_template(recording)) {
    template_.sampling_interval_ms = interval_ms(timeline_.moments);
  }

  std::vector<TelemetryEvent> events() {
    add_moments();
    for (const recording::TimeMark& mark : timeline_.marks) {
      const recording::Moment* const moment = last_before(timeline_.moments, mark.time_ns);
      if (moment != nullptr) add(mark.time_ns, "mark", of_host(*moment), mark.text);
    }
    for (const recording::FailureMoment& failure : timeline_.failures)
      add_failure(failure, last_before(timeline_.moments, failure.time_ns));
    std::ranges::stable_sort(events_, {}, &TelemetryEvent::timestamp_ns);
    return std::move(events_);
  }

 private:
  void add_moments() {
    std::map<std::int64_t, std::int64_t> before;  // allocated, by device
    for (const recording::Moment& moment : timeline_.moments) {
      std::vector<TelemetryEvent> all{of_host(moment)};
      for (const recording::DeviceMoment& device : moment.devices) all.push_back(of_device(device));
      for (TelemetryEvent& event : all) {
        const auto [at, is_first] = before.try_emplace(event.device_id, event.allocated_bytes);
        event.change_bytes = event.allocated_bytes - at->second;
        at->second = event.allocated_bytes;
        add(moment.time_ns, "sample", std::move(event), {});
      }
    }
  }

  TelemetryEvent of_host(const recording::Moment& moment) const {
    TelemetryEvent event = template_;
    event.allocated_bytes = event.reserved_bytes =
        static_cast<std::int64_t>(recording::host_bytes_of(moment));
    event.used_bytes = static_cast<std::int64_t>(moment.rss_bytes);
    event.total_bytes = static_cast<std::int64_t>(recording_.header().ram_bytes);
    return event;
  }

  TelemetryEvent of_device(const recording::DeviceMoment& moment) const {
    session::Device device;
    text::read_device(view_, moment.device, device);
    const bool torch = moment.torch_reserved_bytes != 0;
    const auto bytes = [](std::uint64_t value) { return static_cast<std::int64_t>(value); };
    TelemetryEvent event = template_;
    event.device_id = device.ordinal;
    event.allocated_bytes = bytes(torch ? moment.torch_allocated_bytes : moment.counted_bytes);
    event.reserved_bytes = bytes(torch ? moment.torch_reserved_bytes : moment.counted_bytes);
    event.used_bytes = bytes(std::max(moment.used_bytes, moment.counted_bytes));
    event.total_bytes = bytes(moment.total_bytes);
    return event;
  }

  void add_failure(const recording::FailureMoment& failed, const recording::Moment* moment) {
    session::Failure failure{};
    if (moment == nullptr || !view_.read(TableId::failures, failed.failure, failure)) return;
    TelemetryEvent event = of_host(*moment);
    for (const recording::DeviceMoment& device : moment->devices)
      if (device.device == failure.device.device) event = of_device(device);
    add(failed.time_ns, "error", std::move(event),
        failure_text(failure.bytes, static_cast<Api>(failure.api)));
  }

  void add(std::uint64_t time_ns, std::string_view type, TelemetryEvent event,
           std::optional<std::string> context) {
    event.timestamp_ns = static_cast<std::int64_t>(recording_.realtime_of(time_ns));
    event.event_type = type;
    event.context = std::move(context);
    make_consistent(event);
    events_.push_back(std::move(event));
  }

  const recording::Recording& recording_;
  const session::View& view_;
  const recording::Timeline timeline_;
  TelemetryEvent template_;
  std::vector<TelemetryEvent> events_;
};

}  // namespace

TelemetryEvent event_template(const recording::Recording& recording) {
  const session::Header& header = recording.header();
  TelemetryEvent event;
  event.pid = header.pid > 0 ? header.pid : -1;  // a job and a snapshot have none
  event.host = printable({header.host, strnlen(header.host, sizeof header.host)});
  event.metadata = {{"mode", name_of(recording.mode_now())}};
  if (header.rank.known == 1) {
    event.rank = header.rank.rank;
    event.local_rank = header.rank.local_rank;
    event.world_size = header.rank.world_size;
  }
  if (std::string job = printable(recording.text(header.rank.job)); !job.empty())
    event.job_id = std::move(job);
  return event;
}

void make_consistent(TelemetryEvent& event) {
  if (event.context) event.context = clip(printable(*event.context), kLongestContext);
  event.allocated_bytes = std::max<std::int64_t>(0, event.allocated_bytes);
  event.reserved_bytes = std::max(event.allocated_bytes, event.reserved_bytes);
  event.used_bytes = std::max<std::int64_t>(0, event.used_bytes);
  // More used than there is: the total is wrong, so unknown.
  if (event.total_bytes && (*event.total_bytes == 0 || event.used_bytes > *event.total_bytes))
    event.total_bytes.reset();
  const bool on_device = event.device_id >= 0;
  if (on_device && event.reserved_bytes > event.allocated_bytes && !event.inactive_bytes)
    event.inactive_bytes = event.reserved_bytes - event.allocated_bytes;
  // A process's figures do not show how much is free on the host.
  event.free_bytes.reset();
  if (on_device && event.total_bytes) event.free_bytes = *event.total_bytes - event.used_bytes;
}

std::vector<TelemetryEvent> events_over_time(const recording::Recording& recording) {
  return OverTime{recording}.events();
}

std::string failure_text(std::uint64_t bytes, Api api) {
  return fmt::format("{} refused to {}", size_text(bytes), name_of(api));
}

}  // namespace oomrec::tools::formats

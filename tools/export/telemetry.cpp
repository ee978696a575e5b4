// TelemetryEvent v2, as JSON lines: what GPU Memory Profiler's readers take. No key but those of
// the format; what is not known is null.
//
// One line a moment and device, the host (device_id -1) among them, and one a refusal and a mark of
// the program's own; or one line an event.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "tools/export/format.h"
#include "tools/export/json_stream.h"
#include "tools/export/records.h"
#include "tools/text.h"

namespace oomrec::tools {
namespace {

using session::TableId;

constexpr std::size_t kLongestContext = 400;

struct Figures {
  int device_id = -1;
  std::int64_t allocated = 0, reserved = 0, change = 0;
  std::uint64_t used = 0;
  std::uint64_t total = 0;  // 0: not known
};

class Telemetry {
 public:
  explicit Telemetry(const Exported& exported)
      : recording_(exported.recording()),
        view_(recording_.view()),
        header_(recording_.header()),
        host_(printable({header_.host, strnlen(header_.host, sizeof header_.host)})) {}

  void write_timeline(Output& output) {
    const Timeline timeline = timeline_of(recording_);
    set_interval(timeline.moments);
    std::map<int, std::int64_t> before;
    for (const Moment& moment : timeline.moments) {
      for (Figures figures : figures_of(moment)) {
        const auto [at, is_first] = before.try_emplace(figures.device_id, figures.allocated);
        figures.change = figures.allocated - at->second;
        at->second = figures.allocated;
        add(moment.time_ns, "sample", figures, nullptr);
      }
    }
    for (const TimeMark& mark : timeline.marks) {
      const Moment* const moment = last_before(timeline.moments, mark.time_ns);
      if (moment != nullptr) add(mark.time_ns, "mark", host_figures(*moment), mark.text);
    }
    for (const RefusalMoment& refusal : timeline.refusals)
      add_refusal(refusal, last_before(timeline.moments, refusal.time_ns));
    std::stable_sort(lines_.begin(), lines_.end(),
                     [](const Line& a, const Line& b) { return a.time_ns < b.time_ns; });
    for (const Line& line : lines_) output.write(line.text);
  }

  void write_events(Output& output) {
    for (const EventRow& row : event_rows(recording_)) {
      Figures figures{row.ordinal, row.allocated, row.reserved, row.change, 0, 0};
      figures.used = static_cast<std::uint64_t>(row.reserved);
      figures.total = row.ordinal < 0 ? header_.ram_bytes : total_of(row.device);
      const Json context = row.refused() ? Json(refusal_text(row.bytes, row.api)) : Json(nullptr);
      output.write(line(row.realtime_ns, row.type(), figures, context));
    }
  }

 private:
  struct Line {
    std::uint64_t time_ns;
    std::string text;
  };

  // Mean distance of the samples, which are taken when something happens, ten a second at most.
  void set_interval(const std::vector<Moment>& moments) {
    if (moments.size() < 2) return;
    const std::uint64_t span_ns = moments.back().time_ns - moments.front().time_ns;
    interval_ms_ = span_ns / 1'000'000 / (moments.size() - 1);
  }

  static const Moment* last_before(const std::vector<Moment>& moments, std::uint64_t time_ns) {
    if (moments.empty()) return nullptr;
    const auto after = std::upper_bound(
        moments.begin(), moments.end(), time_ns,
        [](std::uint64_t time, const Moment& moment) { return time < moment.time_ns; });
    return after == moments.begin() ? &*after : &*std::prev(after);
  }

  Figures host_figures(const Moment& moment) const {
    std::uint64_t live = 0;
    for (std::size_t i = 0; i < kSpaceCount; ++i)
      if (is_on_host(static_cast<Space>(i))) live += moment.live_bytes[i];
    const auto allocated = static_cast<std::int64_t>(live);
    return {-1, allocated, allocated, 0, moment.rss_bytes, header_.ram_bytes};
  }

  Figures device_figures(const DeviceMoment& moment) const {
    session::Device device;
    bundle::read_device(view_, moment.device, device);
    const bool torch = moment.torch_reserved_bytes != 0;
    Figures figures;
    figures.device_id = device.ordinal;
    figures.allocated =
        static_cast<std::int64_t>(torch ? moment.torch_allocated_bytes : moment.counted_bytes);
    figures.reserved =
        static_cast<std::int64_t>(torch ? moment.torch_reserved_bytes : moment.counted_bytes);
    figures.used = std::max(moment.used_bytes, moment.counted_bytes);
    figures.total = moment.total_bytes;
    return figures;
  }

  std::vector<Figures> figures_of(const Moment& moment) const {
    std::vector<Figures> all{host_figures(moment)};
    for (const DeviceMoment& device : moment.devices) all.push_back(device_figures(device));
    return all;
  }

  std::uint64_t total_of(std::uint32_t entry) const {
    session::Device device;
    return bundle::read_device(view_, entry, device) ? device.total_bytes.load() : 0;
  }

  static std::string refusal_text(std::uint64_t bytes, Api api) {
    return fmt::format("{} refused to {}", size_text(bytes), name_of(api));
  }

  void add_refusal(const RefusalMoment& refusal, const Moment* moment) {
    session::Failure failure{};
    if (moment == nullptr || !view_.read(TableId::failures, refusal.failure, failure)) return;
    Figures figures = host_figures(*moment);
    for (const DeviceMoment& device : moment->devices)
      if (device.device == failure.device.device) figures = device_figures(device);
    add(refusal.time_ns, "error", figures,
        refusal_text(failure.bytes, static_cast<Api>(failure.api)));
  }

  void add(std::uint64_t time_ns, std::string_view type, const Figures& figures,
           const Json& context) {
    lines_.push_back({time_ns, line(recording_.realtime_of(time_ns), type, figures, context)});
  }

  std::string line(std::uint64_t realtime_ns, std::string_view type, const Figures& figures,
                   Json context) const {
    if (context.is_string()) context = clip(printable(context.get<std::string>()), kLongestContext);
    // Used is not more than there is: what contradicts itself is not known.
    const bool total_known = figures.total != 0 && figures.used <= figures.total;
    const bool on_device = figures.device_id >= 0;
    const bool divided = on_device && figures.reserved > figures.allocated;
    const Json unknown = nullptr;
    return json_text({
               {"schema_version", 2},
               {"timestamp_ns", realtime_ns},
               {"event_type", type},
               {"collector", "oomrec"},
               {"sampling_interval_ms", interval_ms_},
               {"pid", header_.pid},
               {"host", host_},
               {"device_id", figures.device_id},
               {"allocator_allocated_bytes", figures.allocated},
               {"allocator_reserved_bytes", std::max(figures.allocated, figures.reserved)},
               {"allocator_active_bytes", unknown},
               {"allocator_inactive_bytes",
                divided ? Json(figures.reserved - figures.allocated) : unknown},
               {"allocator_change_bytes", figures.change},
               {"device_used_bytes", figures.used},
               // Of the host it is not the process that tells.
               {"device_free_bytes",
                total_known && on_device ? Json(figures.total - figures.used) : unknown},
               {"device_total_bytes", total_known ? Json(figures.total) : unknown},
               {"context", context},
               {"metadata", {{"mode", name_of(recording_.mode_now())}}},
           }) +
           "\n";
  }

  const Recording& recording_;
  const session::View& view_;
  const session::Header& header_;
  const std::string host_;
  std::uint64_t interval_ms_ = 0;
  std::vector<Line> lines_;
};

}  // namespace

void write_telemetry(const Exported& exported, Output& output) {
  Telemetry telemetry{exported};
  exported.wants(What::events) ? telemetry.write_events(output) : telemetry.write_timeline(output);
}

}  // namespace oomrec::tools

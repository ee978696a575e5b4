// A Perfetto trace (https://ui.perfetto.dev): memory over time as counters, failures and marks as
// instants, and the heap profile with one heap for each space.
//
// Field numbers: protos/perfetto/trace/perfetto_trace.proto of https://github.com/google/perfetto.
// Times are those of the session's clock, CLOCK_MONOTONIC. A clock snapshot relates it to real
// time.
#include <fmt/format.h>

#include <map>

#include "tools/base/text.h"
#include "tools/recording/reading/devices.h"
#include "tools/views/export/format.h"
#include "tools/views/export/perfetto_heap.h"
#include "tools/views/export/protobuf.h"
#include "tools/views/export/records.h"

namespace oomrec::tools::views {
namespace {

// The field numbers of each message.
namespace trace {
constexpr unsigned kPacket = 1;
}
namespace packet {
constexpr unsigned kClockSnapshot = 6, kTimestamp = 8, kSequence = 10, kTrackEvent = 11,
                   kSequenceFlags = 13, kDefaults = 59, kTrackDescriptor = 60;
}
namespace clock_snapshot {
constexpr unsigned kClock = 1, kPrimary = 2;
}
namespace clock {
constexpr unsigned kId = 1, kTimestamp = 2;
}
namespace defaults {
constexpr unsigned kClockId = 58;
}
namespace track {
constexpr unsigned kUuid = 1, kName = 2, kProcess = 3, kParent = 5, kCounter = 8;
}
namespace process {
constexpr unsigned kPid = 1, kCommandLine = 2, kName = 6;
}
namespace counter {
constexpr unsigned kUnit = 3;
}
namespace event {
constexpr unsigned kAnnotation = 4, kType = 9, kTrack = 11, kCategory = 22, kName = 23,
                   kCounterValue = 30;
}
namespace annotation {
constexpr unsigned kUnsigned = 3, kText = 6, kName = 10;
}

constexpr std::uint64_t kRealtime = 1, kMonotonic = 3, kBoottime = 6;  // ids of clocks
constexpr std::uint64_t kUnitBytes = 3;
constexpr std::uint64_t kInstant = 3, kCounterEvent = 4;  // types of track events
constexpr std::uint64_t kStateCleared = 1;                // the sequence begins here
constexpr std::uint64_t kSequenceId = 1, kProcessTrack = 1;

class Trace {
 public:
  Trace(const ExportRequest& request, Output& output)
      : request_(request), recording_(request.recording()), output_(output) {}

  void write() {
    write_beginning();
    if (request_.wants(Content::timeline)) write_timeline();
    if (request_.wants(Content::holders)) write_packet(heap_profile(request_));
  }

 private:
  void write_packet(Message packet) {
    packet.number(packet::kSequence, kSequenceId);
    Message whole;
    output_.write(whole.message(trace::kPacket, packet).bytes());
  }

  static Message clock(std::uint64_t id, std::uint64_t time_ns) {
    Message message;
    message.number(clock::kId, id).number(clock::kTimestamp, time_ns);
    return message;
  }

  void write_beginning() {
    const session::Header& header = recording_.header();
    Message clocks;
    clocks.message(clock_snapshot::kClock, clock(kMonotonic, header.start_monotonic_ns));
    // Equal to CLOCK_MONOTONIC: time in suspend is not recorded.
    clocks.message(clock_snapshot::kClock, clock(kBoottime, header.start_monotonic_ns));
    clocks.message(clock_snapshot::kClock, clock(kRealtime, header.start_realtime_ns));
    clocks.number(clock_snapshot::kPrimary, kMonotonic);
    Message first, defaults;
    first.message(packet::kClockSnapshot, clocks);
    first.message(packet::kDefaults, defaults.number(defaults::kClockId, kMonotonic));
    write_packet(first.number(packet::kSequenceFlags, kStateCleared));

    Message process;
    process.number(process::kPid, static_cast<std::uint32_t>(header.pid));
    const std::vector<std::string> arguments = recording_.arguments();
    for (const std::string& argument : arguments)
      process.text(process::kCommandLine, printable(argument));
    if (!arguments.empty()) process.text(process::kName, printable(arguments[0]));
    Message description;
    write_track(description.number(track::kUuid, kProcessTrack).message(track::kProcess, process));
  }

  void write_track(const Message& description) {
    Message packet;
    write_packet(packet.message(packet::kTrackDescriptor, description));
  }

  // A new track below that of the process.
  std::uint64_t new_track(const std::string& name, Message description) {
    description.number(track::kUuid, ++tracks_).text(track::kName, name);
    write_track(description.number(track::kParent, kProcessTrack));
    return tracks_;
  }

  std::uint64_t new_counter_track(const std::string& name) {
    Message description, unit;
    description.message(track::kCounter, unit.number(counter::kUnit, kUnitBytes));
    return new_track(name, description);
  }

  std::uint64_t new_event_track(const std::string& name) { return new_track(name, {}); }

  void write_event(std::uint64_t time_ns, const Message& event) {
    Message packet;
    write_packet(packet.number(packet::kTimestamp, time_ns).message(packet::kTrackEvent, event));
  }

  void write_count(std::uint64_t time_ns, const std::string& name, std::uint64_t bytes) {
    std::uint64_t& track = counters_[name];
    if (track == 0) track = new_counter_track(name);
    Message event;
    event.number(event::kType, kCounterEvent).number(event::kTrack, track);
    write_event(time_ns, event.number_even_zero(event::kCounterValue, bytes));
  }

  void write_timeline() {
    const recording::Timeline timeline = recording::timeline_of(recording_);
    for (const recording::Moment& moment : timeline.moments) write_moment(moment);
    if (!timeline.failures.empty()) {
      const std::uint64_t track = new_event_track("refusals");
      for (const recording::FailureMoment& moment : timeline.failures) write_failure(moment, track);
    }
    if (timeline.marks.empty()) return;
    const std::uint64_t track = new_event_track("marks");
    for (const recording::TimeMark& mark : timeline.marks)
      write_event(mark.time_ns, instant(track, "mark", clip(printable(mark.text), kLongestName)));
  }

  // Unused spaces and devices get no track.
  void write_moment(const recording::Moment& moment) {
    write_count(moment.time_ns, "RSS", moment.rss_bytes);
    for (std::size_t i = 0; i < kSpaceCount; ++i) {
      const std::string name = fmt::format("{} live", kSpaceNames[i]);
      if (moment.live_bytes[i] != 0 || counters_.contains(name))
        write_count(moment.time_ns, name, moment.live_bytes[i]);
    }
    for (const recording::DeviceMoment& device : moment.devices) {
      const std::string label = recording::device_label(recording_, device.device);
      write_count(moment.time_ns, label + " held", device.counted_bytes);
      if (device.total_bytes != 0) write_count(moment.time_ns, label + " used", device.used_bytes);
      if (device.torch_reserved_bytes == 0) continue;
      write_count(moment.time_ns, label + " torch allocated", device.torch_allocated_bytes);
      write_count(moment.time_ns, label + " torch reserved", device.torch_reserved_bytes);
    }
  }

  static Message instant(std::uint64_t track, const std::string& category,
                         const std::string& name) {
    Message event;
    event.number(event::kType, kInstant).number(event::kTrack, track);
    event.text(event::kCategory, category).text(event::kName, name);
    return event;
  }

  void write_failure(const recording::FailureMoment& moment, std::uint64_t track) {
    session::Failure failure{};
    if (!recording_.view().read(session::TableId::failures, moment.failure, failure)) return;
    const std::string_view api = name_of(static_cast<Api>(failure.api));
    Message event = instant(track, "refusal", fmt::format("{} refused", size_text(failure.bytes)));
    Message bytes, function;
    bytes.text(annotation::kName, "bytes").number_even_zero(annotation::kUnsigned, failure.bytes);
    function.text(annotation::kName, "function").text(annotation::kText, api);
    event.message(event::kAnnotation, bytes).message(event::kAnnotation, function);
    write_event(moment.time_ns, event);
  }

  const ExportRequest& request_;
  const recording::Recording& recording_;
  Output& output_;
  std::map<std::string, std::uint64_t> counters_;  // tracks by name
  std::uint64_t tracks_ = kProcessTrack;
};

}  // namespace

void write_perfetto(const ExportRequest& request, Output& output) {
  Trace{request, output}.write();
}

}  // namespace oomrec::tools::views

// TelemetryEvent v2 as JSON lines, for GPU Memory Profiler's readers.
//
// The time line has one line for each moment and device (the host is device_id -1), and one for
// each failure and mark (telemetry/recorded.h). Events have one line each.
#include "tools/formats/telemetry/recorded.h"
#include "tools/views/export/format.h"
#include "tools/views/export/records.h"

namespace oomrec::tools::views {
namespace {

std::uint64_t total_of(const recording::Recording& recording, const EventRow& row) {
  if (row.ordinal < 0) return recording.header().ram_bytes;
  session::Device device;
  return text::read_device(recording.view(), row.device, device) ? device.total_bytes.load() : 0;
}

formats::TelemetryEvent event_of(const recording::Recording& recording, const EventRow& row) {
  formats::TelemetryEvent event = formats::event_template(recording);
  event.timestamp_ns = static_cast<std::int64_t>(row.realtime_ns);
  event.event_type = row.type();
  event.device_id = row.ordinal;
  event.allocated_bytes = row.allocated;
  event.reserved_bytes = row.reserved;
  event.change_bytes = row.change;
  event.used_bytes = row.reserved;
  event.total_bytes = static_cast<std::int64_t>(total_of(recording, row));
  if (row.is_failure()) event.context = formats::failure_text(row.bytes, row.api);
  formats::make_consistent(event);
  return event;
}

}  // namespace

void write_telemetry(const ExportRequest& request, Output& output) {
  const auto write = [&](const formats::TelemetryEvent& event) {
    output.write(json_text(formats::event_json(event)) + "\n");
  };
  if (request.wants(Content::events)) {
    for (const EventRow& row : event_rows(request.recording()))
      write(event_of(request.recording(), row));
  } else {
    for (const formats::TelemetryEvent& event : formats::events_over_time(request.recording()))
      write(event);
  }
}

}  // namespace oomrec::tools::views

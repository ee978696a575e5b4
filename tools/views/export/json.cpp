// oomrec's JSON (docs/json.md): rows, which refer to stacks and frames by number.
#include "tools/base/text.h"
#include "tools/recording/reading/devices.h"
#include "tools/recording/stack_text/stack_text.h"
#include "tools/views/export/format.h"
#include "tools/views/export/output.h"
#include "tools/views/export/records.h"

namespace oomrec::tools::views {
namespace {

class Document {
 public:
  Document(const ExportRequest& request, Output& output)
      : request_(request), recording_(request.recording()), json_(output) {}

  void write() {
    const Content content = request_.contents[0];
    json_.member("schema_version", 1);
    json_.member("what", word_of(content));
    json_.member("mode", name_of(recording_.mode_now()));
    json_.member("estimated", recording_.estimated());
    if (content == Content::timeline) {
      write_timeline();
    } else {
      content == Content::holders ? write_holders() : write_events();
      write_stacks();
    }
    json_.end();
  }

 private:
  void write_holders() {
    json_.begin_array("holders");
    for (const HolderRow& row : holder_rows(recording_, request_.stacks, request_.selection)) {
      Json record = holder_record(row);
      record["stack"] = stacks_(row.stack);
      json_.row(record);
    }
    json_.end_array();
  }

  void write_events() {
    json_.begin_array("events");
    for (const EventRow& row : event_rows(recording_)) {
      Json record = event_record(recording_, row);
      record["stack"] = nullptr;
      if (row.node != 0) record["stack"] = stacks_(exported_stack(request_.stacks, row.node));
      json_.row(record);
    }
    json_.end_array();
  }

  void write_timeline() {
    const recording::Timeline timeline = recording::timeline_of(recording_);
    json_.begin_array("moments");
    for (const recording::Moment& moment : timeline.moments)
      json_.row(moment_record(recording_, moment));
    json_.end_array();
    json_.begin_array("marks");
    for (const recording::TimeMark& mark : timeline.marks) {
      json_.row(
          {{"time_ns", recording_.realtime_of(mark.time_ns)}, {"text", printable(mark.text)}});
    }
    json_.end_array();
    json_.begin_array("refusals");
    for (const recording::FailureMoment& moment : timeline.failures)
      json_.row(failure_json(moment));
    json_.end_array();
    json_.begin_array("limits");
    for (const recording::LimitLine& limit : timeline.limits) {
      json_.row({{"name", printable(limit.name)},
                 {"bytes", limit.bytes},
                 {"device", text_or_null(recording::device_label(recording_, limit.device))}});
    }
    json_.end_array();
  }

  Json failure_json(const recording::FailureMoment& moment) const {
    session::Failure failure{};
    recording_.view().read(session::TableId::failures, moment.failure, failure);
    return {{"time_ns", recording_.realtime_of(moment.time_ns)},
            {"bytes", failure.bytes},
            {"space", name_of(static_cast<Space>(failure.space))},
            {"device", text_or_null(recording::device_label(recording_, failure.device.device))},
            {"api", name_of(static_cast<Api>(failure.api))}};
  }

  // Frames innermost first, by number.
  void write_stacks() {
    json_.begin_array("stacks");
    for (const recording::StackId stack : stacks_.ids()) {
      Json numbers = Json::array();
      for (const recording::LocationId location : request_.stacks.locations(stack))
        numbers.push_back(frames_(location));
      json_.row(numbers);
    }
    json_.end_array();
    json_.begin_array("frames");
    for (const Json& frame : recording::stack_json(frames_.ids(), request_.locations()))
      json_.row(frame);
    json_.end_array();
  }

  const ExportRequest& request_;
  const recording::Recording& recording_;
  JsonStream json_;
  Numbering stacks_, frames_;
};

}  // namespace

void write_json(const ExportRequest& request, Output& output) { Document{request, output}.write(); }

}  // namespace oomrec::tools::views

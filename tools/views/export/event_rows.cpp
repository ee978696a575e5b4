#include "tools/views/export/event_rows.h"

#include "common/text/device_text.h"

namespace oomrec::tools::views {
namespace {

using session::TableId;

// A failed allocation's event has few figures; the record of the failure has the others.
void add_failure(const session::Failure& failure, EventRow& row) {
  row.api = static_cast<Api>(failure.api);
  row.address = 0;
  row.bytes = failure.bytes;
  row.node = failure.node;
  row.space = static_cast<Space>(failure.space);
  row.device = failure.device.device;
  row.device_free = failure.device.free_bytes;
}

EventRow row_of(const recording::Recording& recording, const session::Event& event) {
  const session::View& view = recording.view();
  EventRow row;
  row.kind = event.kind;
  row.api = event.api;
  row.realtime_ns = recording.header().start_realtime_ns + std::uint64_t{event.time_ms} * 1'000'000;
  row.address = event.address;
  row.bytes = event.bytes;
  row.node = event.stack;
  row.space = event.space;
  row.device = event.device;
  row.change = bundle::change_of(event);
  session::Failure failure{};
  if (row.is_failure() && view.read(TableId::failures, event.address, failure))
    add_failure(failure, row);
  session::Device device;
  if (!is_on_host(row.space) && text::read_device(view, row.device, device))
    row.ordinal = device.ordinal;
  const std::uint64_t time_ns =
      view.header().start_monotonic_ns + std::uint64_t{event.time_ms} * 1'000'000;
  row.tid = view.thread_at(event.thread, time_ns).tid;
  return row;
}

}  // namespace

std::vector<EventRow> event_rows(const recording::Recording& recording) {
  const std::vector<session::Event> events = recording::events_of(recording);
  bundle::Accounts accounts;
  accounts.load(recording.view());
  for (const session::Event& event : events) accounts.revert(event);
  std::vector<EventRow> rows;
  rows.reserve(events.size());
  for (const session::Event& event : events) {
    EventRow& row = rows.emplace_back(row_of(recording, event));
    accounts.apply(event);
    const bundle::Account& account = accounts.of(row.space, row.device);
    row.allocated = account.allocated();
    row.reserved = account.reserved();
  }
  return rows;
}

}  // namespace oomrec::tools::views

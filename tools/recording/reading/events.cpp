#include "tools/recording/reading/events.h"

#include <algorithm>

namespace oomrec::tools::recording {
namespace {

// The latest plausible time of an event. The recorder's coarse clock may lag behind the start of
// the session: the time of the first events is then negative, and wraps to long after the end.
std::uint64_t latest_ms(const Recording& recording) {
  constexpr std::uint64_t kSlackMs = 60'000;
  const session::Header& header = recording.header();
  std::uint64_t end_ns = std::max(header.last_tick_ns.load(), header.start_monotonic_ns);
  for (const auto& failure :
       session::entries<session::Failure>(recording.view(), session::TableId::failures))
    end_ns = std::max(end_ns, failure.time_ns);
  return (end_ns - header.start_monotonic_ns) / 1'000'000 + kSlackMs;
}

}  // namespace

std::vector<session::Event> events_of(const Recording& recording) {
  std::vector<session::Event> events;
  const std::uint64_t latest = latest_ms(recording);
  for_each_event(recording.view(), [&](session::Event event) {
    if (event.kind == EventKind::mark) return;
    if (event.time_ms > latest) event.time_ms = 0;
    events.push_back(event);
  });
  std::ranges::stable_sort(events, {}, &session::Event::time_ms);
  return events;
}

}  // namespace oomrec::tools::recording

#include "tools/formats/pytorch/trace.h"

#include <algorithm>

namespace oomrec::tools::formats {
namespace {

struct Action {
  std::string_view name;
  EventKind kind;
  Space space;
};
// A block is free only after "free_completed". Expandable segments are mapped instead of allocated.
constexpr Action kActions[] = {
    {"alloc", EventKind::allocate, Space::torch},
    {"free_completed", EventKind::free, Space::torch},
    {"segment_alloc", EventKind::allocate, Space::cuda},
    {"segment_free", EventKind::free, Space::cuda},
    {"segment_map", EventKind::allocate, Space::cuda},
    {"segment_unmap", EventKind::free, Space::cuda},
    {"oom", EventKind::fail, Space::cuda},
};

// Larger figures are forged.
constexpr std::int64_t kMostFigure = std::int64_t{1} << 60, kMostTimeUs = std::int64_t{1} << 53;

std::uint64_t within(std::int64_t number, std::int64_t most) {
  return static_cast<std::uint64_t>(std::clamp<std::int64_t>(number, 0, most));
}

}  // namespace

std::vector<TraceEvent> trace_of(const Pickle& pickle, const Pickle::Value& snapshot) {
  std::vector<TraceEvent> events;
  std::uint32_t device = 0;
  std::size_t entries = 0;  // bounds forged files, which may repeat the same entries
  for (const Pickle::Value& trace : pickle.items(pickle.member(snapshot, "device_traces"))) {
    for (const Pickle::Value& entry : pickle.items(trace)) {
      if (++entries > kMostTrace) throw PickleError{"its trace is too long"};
      const std::string_view name = pickle.text(pickle.member(entry, "action"));
      const auto* const action = std::find_if(std::begin(kActions), std::end(kActions),
                                              [&](const Action& one) { return one.name == name; });
      if (action == std::end(kActions)) continue;
      const auto figure = [&](std::string_view key, std::int64_t most = kMostFigure) {
        return within(pickle.number(pickle.member(entry, key)), most);
      };
      events.push_back({figure("time_us", kMostTimeUs), action->kind, action->space, device,
                        figure("addr"), figure("size"), figure("device_free"),
                        &pickle.member(entry, "frames")});
    }
    ++device;
  }
  std::stable_sort(events.begin(), events.end(),
                   [](const TraceEvent& a, const TraceEvent& b) { return a.time_us < b.time_us; });
  return events;
}

}  // namespace oomrec::tools::formats

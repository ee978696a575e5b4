#include "tools/formats/pytorch/trace.h"

#include <algorithm>
#include <bit>
#include <memory>

#include "common/session/ring.h"

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
      const auto* const action = std::ranges::find(kActions, name, &Action::name);
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
  std::ranges::stable_sort(events, {}, &TraceEvent::time_us);
  return events;
}

namespace {

constexpr std::size_t kMostSlotsOfEvent = 5;  // with its location, size and time

std::uint32_t ms_since(std::uint64_t start_us, std::uint64_t time_us) {
  return static_cast<std::uint32_t>(
      std::min<std::uint64_t>((time_us - start_us) / 1000, UINT32_MAX));
}

}  // namespace

void write_ring(const std::vector<TraceEvent>& trace, const std::vector<std::uint32_t>& entries,
                StackNodes& stacks, recording::Image& image, session::Lane& lane) {
  if (trace.empty()) return;
  const std::size_t needed = std::bit_ceil(trace.size() * kMostSlotsOfEvent);
  const auto slots =
      static_cast<std::uint32_t>(std::min<std::size_t>(needed, session::kMaxRingSlots));
  const std::size_t first = trace.size() - std::min(trace.size(), slots / kMostSlotsOfEvent);
  // Not written in place: of_frames() adds nodes to the image, which may move it.
  const auto ring = std::make_unique<session::Slot[]>(slots);
  lane.ring_slots = slots;
  session::RingWriter writer;
  writer.use(lane, ring.get());
  for (std::size_t i = first; i < trace.size(); ++i) {
    const TraceEvent& event = trace[i];
    const Api api = event.kind == EventKind::fail ? Api::reportOutOfMemoryToProfiler
                                                  : Api::reportMemoryUsageToProfiler;
    const std::uint32_t node = event.kind == EventKind::free ? 0 : stacks.of_frames(*event.frames);
    writer.append_device_event(ms_since(trace.front().time_us, event.time_us), 0, event.kind,
                               session::packed_location(api, event.space, entries[event.device]),
                               event.address, event.bytes, node);
  }
  lane.ring_offset = image.allocate(std::uint64_t{slots} * sizeof(session::Slot));
  if (lane.ring_offset == 0) {
    lane.ring_slots = 0;
    return;
  }
  std::memcpy(image.at(lane.ring_offset), static_cast<const void*>(ring.get()),
              slots * sizeof(session::Slot));
}

}  // namespace oomrec::tools::formats

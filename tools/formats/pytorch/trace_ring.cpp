#include "tools/formats/pytorch/trace_ring.h"

#include <algorithm>
#include <bit>
#include <memory>

#include "common/session/ring.h"

namespace oomrec::tools::formats {
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

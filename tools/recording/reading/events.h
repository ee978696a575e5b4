// The latest events of all threads, from their ring buffers.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "tools/recording/reading/recording.h"

namespace oomrec::tools::recording {

// Visits what the rings of all threads still have: the events of one thread in order, of one thread
// after the other.
template <class Visit>
void for_each_event(const session::View& view, Visit&& visit) {
  session::Event event;
  for (const auto& lane : session::entries<session::Lane>(view, session::TableId::lanes)) {
    if (lane.ring_slots > session::kMaxRingSlots) continue;
    const std::uint64_t next = lane.ring_next;
    for (std::uint64_t number = next - std::min<std::uint64_t>(next, lane.ring_slots);
         number < next; ++number)
      if (view.event(lane, number, event)) visit(event);
  }
}

// Allocations, frees and failures, sorted by time. Within a millisecond, the events of one thread
// are in order; those of different threads may not be. A sampled recording has the sampled events.
std::vector<session::Event> events_of(const Recording&);

}  // namespace oomrec::tools::recording

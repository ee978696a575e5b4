// The events in a PyTorch snapshot's device_traces.
#pragma once

#include <vector>

#include "common/session/vocabulary.h"
#include "tools/formats/pytorch/pickle_reader.h"
#include "tools/formats/pytorch/stack_nodes.h"

namespace oomrec::tools::formats {

struct TraceEvent {
  std::uint64_t time_us = 0;  // since 1970
  EventKind kind = EventKind::none;
  Space space = Space::torch;  // cuda: the event is about a segment
  std::uint32_t device = 0;
  std::uint64_t address = 0, bytes = 0;
  std::uint64_t device_free = 0;          // only of a failure
  const Pickle::Value* frames = nullptr;  // in the pickle
};

// The events of all devices, sorted by time, without those that change no memory. Throws
// PickleError if there are more than kMostTrace.
inline constexpr std::size_t kMostTrace = std::size_t{1} << 21;
std::vector<TraceEvent> trace_of(const Pickle&, const Pickle::Value& snapshot);

// Writes a PyTorch snapshot's trace to the ring of a lane: as many of the latest events as fit.

// `entries`: the entry of each device, by its number. The address of a failure event is its entry
// in `failures`.
void write_ring(const std::vector<TraceEvent>& trace, const std::vector<std::uint32_t>& entries,
                StackNodes& stacks, recording::Image& image, session::Lane& lane);

}  // namespace oomrec::tools::formats

// Events as exports write them: each with its device, its thread and the running totals after it.
#pragma once

#include <vector>

#include "common/bundle/accounts.h"
#include "tools/recording/reading/events.h"

namespace oomrec::tools::views {

struct EventRow {
  EventKind kind = EventKind::none;
  Api api = Api::none;
  std::uint64_t realtime_ns = 0;
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;  // requested
  std::uint32_t node = 0;   // 0: unknown, as for a free
  Space space = Space::heap;
  std::uint32_t device = 0;                  // entry in `devices`; 0: the host, or unknown
  int ordinal = -1;                          // of the device; -1: the host, or unknown
  std::int32_t tid = 0;                      // 0: unknown
  std::int64_t change = 0;                   // bytes
  std::uint64_t device_free = 0;             // at a failure, as the driver reported it; 0: unknown
  std::int64_t allocated = 0, reserved = 0;  // on the same device, after the event

  bool is_failure() const { return kind == EventKind::fail; }
  bool is_release() const { return kind == EventKind::free || kind == EventKind::unmap; }
  // As in a bundle's events.json.
  std::string_view type() const {
    return is_failure() ? "error" : is_release() ? "deallocation" : "allocation";
  }
};

// All events, in order of time. The running totals of a sampled recording are estimates; the last
// ones are always exact.
std::vector<EventRow> event_rows(const recording::Recording&);

}  // namespace oomrec::tools::views

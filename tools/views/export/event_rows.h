// Events as exports tell them: whose they are, and who has how much after each.
#pragma once

#include <string>
#include <vector>

#include "common/bundle/accounts.h"
#include "tools/recording/reading/events.h"

namespace oomrec::tools::views {

struct EventRow {
  EventKind kind = EventKind::none;
  Api api = Api::none;
  std::uint64_t realtime_ns = 0;
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;  // as asked for
  std::uint32_t node = 0;   // 0: not known, as of a free
  Space space = Space::heap;
  std::uint32_t device = 0;                  // entry in `devices`; 0: the host, or not known whose
  int ordinal = -1;                          // of the device; -1: the host, or not known whose
  std::int32_t tid = 0;                      // 0: not known
  std::int64_t change = 0;                   // bytes
  std::uint64_t device_free = 0;             // of a refusal: as the driver told; 0: not known
  std::int64_t allocated = 0, reserved = 0;  // on the same device, afterwards

  bool refused() const { return kind == EventKind::fail; }
  bool released() const { return kind == EventKind::free || kind == EventKind::unmap; }
  // The words of a bundle's events.json.
  std::string_view type() const {
    return refused() ? "error" : released() ? "deallocation" : "allocation";
  }
};

// All of the recording, in order of time. Of a sampled recording the running totals are near the
// truth, not on it; the last ones are exact in any case.
std::vector<EventRow> event_rows(const recording::Recording&);

}  // namespace oomrec::tools::views

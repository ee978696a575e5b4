// The request that a thread is making right now. Some calls touch the memory they return: a mapping
// with MAP_POPULATE, any after mlockall(MCL_FUTURE), an allocator that clears or copies. If the
// kernel kills the process in there, nothing of the request has been recorded yet, and of a realloc
// not even the old block is any more. So a large request is entered in the thread's lane before the
// call, and a realloc's old block when it leaves the recording. Both end as the new block or
// mapping is recorded: to count that may take a sample of the limits, whose system calls may kill
// as well.
#pragma once

#include <cstdint>

#include "common/session/entries.h"
#include "common/system/hook_scope.h"
#include "recorder/state/request.h"

namespace oomrec::recorder {

inline constexpr std::uint64_t kInFlightBytes = std::uint64_t{1} << 20;

// What came of the request of the lane's thread, if it makes one, is in the recording.
inline void end_in_flight(session::Lane& lane) noexcept {
  lane.in_flight.bytes.store(0, std::memory_order_release);
}

// The old block of its realloc is about to leave the recording.
inline void replace_in_flight(session::Lane& lane, std::uint32_t holder,
                              std::uint64_t bytes) noexcept {
  if (lane.in_flight.bytes.load(std::memory_order_relaxed) == 0) return;
  lane.in_flight.replaced_bytes = bytes;
  lane.in_flight.replaced_holder = holder;
}

class InFlight {
 public:
  // `bytes`: what the request would add; below kInFlightBytes nothing is done. Cost: the stack is
  // captured.
  InFlight(InHook hook, const Request& request, std::uint64_t bytes) noexcept {
    if (bytes >= kInFlightBytes) [[unlikely]]
      begin(hook, request);
  }
  // What came of the request has been recorded, or is about to be.
  void end() noexcept {
    if (lane_ == nullptr) [[likely]]
      return;
    end_in_flight(*lane_);
    lane_ = nullptr;
  }
  ~InFlight() { end(); }
  InFlight(const InFlight&) = delete;
  InFlight& operator=(const InFlight&) = delete;

 private:
  [[gnu::cold]] void begin(InHook, const Request&) noexcept;

  session::Lane* lane_ = nullptr;
};

}  // namespace oomrec::recorder

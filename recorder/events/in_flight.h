// The request that a thread is making right now. Some calls touch the memory they return: a mapping
// with MAP_POPULATE, any after mlockall(MCL_FUTURE), an allocator that clears or copies. If the
// kernel kills the process in there, nothing of the request has been recorded yet, and of a realloc
// not even the old block is any more. So a large request is entered in the thread's lane before the
// call.
#pragma once

#include <cstdint>

#include "common/system/hook_scope.h"
#include "recorder/events/heap.h"
#include "recorder/state/request.h"

namespace oomrec::recorder {

inline constexpr std::uint64_t kInFlightBytes = std::uint64_t{1} << 20;

class InFlight {
 public:
  // `bytes`: what the request would add; below kInFlightBytes nothing is done. `replaced`: the old
  // block of a realloc. Cost: the stack is captured.
  InFlight(InHook hook, const Request& request, std::uint64_t bytes,
           const Released& replaced = {}) noexcept {
    if (bytes >= kInFlightBytes) [[unlikely]]
      begin(hook, request, replaced);
  }
  // What came of the request has been recorded, or is about to be.
  void end() noexcept {
    if (lane_ == nullptr) [[likely]]
      return;
    lane_->in_flight.bytes.store(0, std::memory_order_release);
    lane_ = nullptr;
  }
  ~InFlight() { end(); }
  InFlight(const InFlight&) = delete;
  InFlight& operator=(const InFlight&) = delete;

 private:
  [[gnu::cold]] void begin(InHook, const Request&, const Released&) noexcept;

  session::Lane* lane_ = nullptr;
};

}  // namespace oomrec::recorder

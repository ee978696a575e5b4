// A failed request, as stored by the thread that made it, with everything that its bundle needs.
#pragma once

#include <cstdint>

#include "recorder/stack/stack.h"
#include "recorder/state/request.h"

namespace oomrec::recorder {

// What is known of the outcome. By which event it changes:
//   pending → resolved   PyTorch gives up (confirm_failure), or has its block (on_torch_served)
//   open → resolved      the same request is served (resolve_served_device), or an exception
//   reports it
// What is never resolved is reported at the end of the process, if it has no bundle yet.
enum class FailureStage : std::uint8_t {
  pending,   // PyTorch's allocator asked: it frees its cache and tries again. Not reported yet
  open,      // the program may end of it
  resolved,  // it did no harm, or is reported with its outcome
};

struct FailedRequest {
  Request request{};
  int error = 0;
  FailedBy by = FailedBy::system;
  FailureStage stage = FailureStage::open;
  bool unserved = false;          // a probe that the process ended of
  bool recovered_before = false;  // the program recovered from an earlier one of its kind

  // The same stack has allocated memory since. Only recorded allocations set it: in sampled mode a
  // small block may go unnoticed.
  bool served = false;
  bool raised = false;  // it led to an exception, which is in its bundle

  std::uint32_t number = 0;  // among all failures of the process, from 1
  std::uint32_t node = 0;
  std::uint32_t thread = 0;
  std::uint32_t entry = 0;    // in `failures`; 0: that table is full
  std::uint32_t bundle = 0;   // of its root, if it is an after-shock without an entry
  std::uint64_t time_ns = 0;  // 0: nothing has failed
  std::int64_t live_bytes = 0;
};

// Where a thread was when its latest request failed: what a crash is compared with.
inline constexpr std::uint32_t kFailedFrames = 24;
struct FailedCall {
  std::uint64_t served;         // requests of the thread before it
  std::uint64_t served_to_all;  // requests of all threads before it
  std::uint32_t count;
  stack::Activation frames[kFailedFrames];  // innermost first
};

}  // namespace oomrec::recorder

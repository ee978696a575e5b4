// Test doubles of the recorder's dependencies: stacks chosen by the test, bundles that are only
// counted.
#pragma once

#include <cstdint>

#include "common/bundle/bundle.h"

namespace oomrec::doubles {

// The result of capture() on the calling thread: one frame below the thread's group …
inline thread_local std::uint32_t t_stack = 1;
inline thread_local std::uint32_t t_function = 0;     // … and this one below that, if not 0
inline thread_local std::uint32_t t_module = 0;       // the frame's module
inline thread_local std::uint32_t t_interpreter = 0;  // module_at()

struct Bundles {
  std::uint32_t written = 0;
  bundle::Cause last;
  std::uint32_t near_device = 0;  // the value in the session's header at that time
  bundle::Result result = bundle::Result::written;
  unsigned lasts_ms = 0;
  std::uint32_t completed = 0;
  std::uint64_t completed_last = 0;  // number of the bundle that got the latest texts
  bool under_way = false;  // the last one is still being written and cannot be completed yet
  OutcomeKind outcome = OutcomeKind::running;
};
inline Bundles g_bundles;

}  // namespace oomrec::doubles

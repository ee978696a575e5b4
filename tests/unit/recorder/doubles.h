// Doubles of the recorder's neighbours: stacks that the test chooses, bundles that are only
// counted.
#pragma once

#include <cstdint>

#include "common/bundle/bundle.h"

namespace oomrec::doubles {

// What capture() finds on the calling thread: a frame below the thread's group.
inline thread_local std::uint32_t t_stack = 1;
inline thread_local std::uint32_t t_module = 0;  // of that frame

struct Bundles {
  std::uint32_t written = 0;
  bundle::Cause last;
  std::uint32_t near_device = 0;  // in the session's header when it was written
  bundle::Result result = bundle::Result::written;
  unsigned lasts_ms = 0;
  std::uint32_t completed = 0;
  std::uint64_t told = 0;  // number of the bundle that got the latest texts
  bool under_way = false;  // the last one: it cannot be completed yet
  OutcomeKind outcome = OutcomeKind::running;
};
inline Bundles g_bundles;

}  // namespace oomrec::doubles

// Whether a crash follows from the failed request of its thread, how certainly, and by what
// evidence. Private to this folder.
//
// Time alone decides nothing. What does: whether the fault address was computed from the failed
// call's result, what the program's code did with that result, whether only a failure leads to
// where the program crashed, which exception was thrown, and how many requests were served since.
// The failed call may be another thread's, if the one that crashed has none.
#pragma once

#include "common/session/view.h"

namespace oomrec::verdict {

enum class Link : std::uint8_t {
  // It does not follow.
  sent,             // by another process
  no_failure,       // nothing failed in this thread
  heap_corruption,  // the C library found its heap damaged
  stack_overflow,
  handled,          // the program dealt with it, and what came after does not depend on it
  other_exception,  // one that has nothing to do with memory
  other_address,    // not an address that the result could lead to
  succeeded_since,  // the same call has succeeded since
  much_later,       // after too many served requests
  // It does, or may.
  derived,           // the address was computed from the result
  not_set,           // the program used a pointer that the call should have set or returned
  argument,          // the result was passed to the function that crashed
  near_result,       // the address is the result plus less than was asked for
  failure_path,      // only a failure leads there
  failure_overflow,  // the same, and it ran out of stack there
  failure_damage,    // the same, and the C library found its heap damaged there
  divided,           // it divided by a size that became 0 by the failure
  old_block,         // it went on as if the block that was not resized had been
  bad_alloc,         // nobody caught a std::bad_alloc
  during_bad_alloc,  // it was handling one
  memory_exception,  // nobody caught an exception that says that memory was short
  shortly_after,     // nothing else happened since, as far as is known
};

struct Ruling {
  Link link = Link::no_failure;
  Certainty certainty = Certainty::likely;

  bool follows() const noexcept { return link >= Link::derived; }
};

Ruling ruling_of(const session::View&) noexcept;

// Calls that return MAP_FAILED (-1) instead of NULL.
bool fails_with_minus_one(const session::Failure&) noexcept;

}  // namespace oomrec::verdict

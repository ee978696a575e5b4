// Forgets stacks that nothing needs any more: their nodes, frames and holders are used again for
// others. docs/forgetting.md explains it.
//
// A *round* raises the era, waits until no thread uses nodes since an earlier one, claims what the
// session refers to (references.h), and then retires every leaf that is idle: no holder of it has
// memory, or had some at the peak, and no thread has found it in the last two eras. Threads do it
// in slices of some microseconds at the end of an event, and no thread waits for another.
#pragma once

#include <cstdint>

#include "common/system/hook_scope.h"

namespace oomrec::recorder {

// Sets when the first round begins. `budget_bytes`: of the recording. `least_nodes`: a round for so
// many new ones, for tests; 0: as the budget permits.
void start_forgetting(std::uint64_t budget_bytes, std::uint32_t least_nodes) noexcept;

// One slice, unless another thread does one. Set as Callbacks::forget.
void forget(InHook) noexcept;

void reset_forgetting_after_fork(InHook) noexcept;

}  // namespace oomrec::recorder

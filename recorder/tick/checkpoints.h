// Checkpoints: the largest holders at a few hundred moments of the process' life, for views over
// time and for what grows (docs/how-it-works.md). Costs the tick less than 100 µs, however many
// holders there are (docs/overhead.md).
#pragma once

#include <cstdint>

#include "common/system/hook_scope.h"

namespace oomrec::recorder {

// On the tick: adds a checkpoint of tick number `tick`, if it gets one. One thread at a time.
void add_checkpoint(InHook, std::uint32_t tick, std::uint64_t now) noexcept;

void reset_checkpoints_after_fork(InHook) noexcept;

}  // namespace oomrec::recorder

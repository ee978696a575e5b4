// What a program's heap held when `oomrec attach` came: one holder. Blocks that are freed later and
// are not on record were part of it.
//
// In exact mode each such free shrinks it. In sampled mode a small block that is not on record may
// as well be a new one that was not sampled; so the tick gives the holder what is left of the exact
// total when all other holders are subtracted. It never grows.
#pragma once

#include <cstdint>

#include "common/system/hook_scope.h"

namespace oomrec::recorder {

// Once, right before the program's calls are redirected: counts these bytes as live.
void add_preexisting_heap(InHook, std::uint64_t bytes) noexcept;

// So many of its bytes are gone. Its number of blocks is not known, and stays.
void release_preexisting(InHook, std::uint64_t bytes) noexcept;

// Called by the tick.
void settle_preexisting_heap(InHook) noexcept;

}  // namespace oomrec::recorder

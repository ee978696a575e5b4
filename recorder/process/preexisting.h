// What a program held when `oomrec attach` came: one holder for each space. Blocks of the heap that
// are freed later and are not on record were part of it.
//
// In exact mode each such free shrinks it. In sampled mode a small block that is not on record may
// as well be a new one that was not sampled; so the tick gives the holder what is left of the exact
// total when all other holders are subtracted. It never grows.
#pragma once

#include <cstdint>

#include "common/session/vocabulary.h"
#include "common/system/hook_scope.h"

namespace oomrec::recorder {

// The holder of such memory in a space; `number` distinguishes several of one space. 0: a table is
// full.
std::uint32_t preexisting_holder(InHook, Space, std::uint32_t number) noexcept;

// Once, right before the program's calls are redirected: counts these bytes as live.
void add_preexisting_heap(InHook, std::uint64_t bytes) noexcept;

// Call last: the totals have it, although the program may do nothing for long.
void publish_preexisting(InHook) noexcept;

// So many of its bytes are gone. Its number of blocks is not known, and stays.
void release_preexisting(InHook, std::uint64_t bytes) noexcept;

// Called by the tick.
void update_preexisting_heap(InHook) noexcept;

}  // namespace oomrec::recorder

// What a fork's child has from its parent's heap: one holder for each of the parent's largest, with
// the parent's stack, and one for the rest.
#pragma once

#include <cstdint>

#include "common/system/hook_scope.h"

namespace oomrec::recorder {

// In the child, while the parent's session is still open: copies its largest holders. Takes some
// 20 µs.
void note_inherited(InHook) noexcept;

// In the child's session: adds the holders, and gives the rest of these totals to
// g_state.inherited_holder. `node`: of the rest.
void add_inherited_heap(InHook, std::uint32_t node, std::uint64_t live_bytes,
                        std::uint64_t live_count) noexcept;

// The child frees a block that it has not recorded: the parent's, of the holder whose blocks have
// this size, else of the rest. With or without a session of its own yet.
void release_inherited(InHook, std::uint64_t usable_bytes) noexcept;

}  // namespace oomrec::recorder

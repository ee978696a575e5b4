// What a fork's child has from its parent's heap, and of Python's small objects: one holder for
// each of the parent's largest, with the parent's stack. The rest of the heap is one holder, and so
// are all mappings, except that those of Python's pool belong to the child's.
#pragma once

#include <cstdint>

#include "common/system/hook_scope.h"

namespace oomrec::recorder {

// In the child, while the parent's session is still open: copies its largest holders. Takes some
// 20 µs, and 10 ns more for each block on record, if there are sampled objects of Python.
void note_inherited(InHook) noexcept;

// Whether the parent had a pool of Python's objects.
bool inherits_pool() noexcept;

// In the child's session: adds the holders, and gives the rest of these totals to
// g_state.inherited_holder. `node`: of the rest.
void add_inherited_heap(InHook, std::uint32_t node, std::uint64_t live_bytes,
                        std::uint64_t live_count) noexcept;

// Once the mappings of Python's pool are its holder's: moves the objects' share to holders of their
// own.
void add_inherited_objects(InHook) noexcept;

// The child frees a block that it has not recorded: the parent's, of the holder whose blocks have
// this size, else of the rest. With or without a session of its own yet.
void release_inherited(InHook, std::uint64_t usable_bytes) noexcept;

// The same for an object that was on record in the parent.
void release_inherited_object(InHook, std::uint64_t address) noexcept;

// Forgets everything, for a recording that begins in the same process.
void forget_inherited(InHook) noexcept;

}  // namespace oomrec::recorder

// The heap of a free-threaded interpreter, which has one of its own (mimalloc) in place of
// pymalloc.
//
// It reserves a GiB of address space at a time, which does not count. What counts is the part that
// is resident, as of the latest look: it is the pool from which objects take their bytes
// (recorder/events/objects.h). Memory that is handed out but was never touched is not resident, so
// the pool counts at least what its objects hold.
#pragma once

#include <cstdint>

#include "common/system/hook_scope.h"

namespace oomrec::recorder {

// From this size on an object counts as it is made.
inline constexpr std::uint64_t kLargeObject = 1 << 20;

// The interpreter is of this kind. What it has reserved before is not known.
void start_object_heap() noexcept;

// Whether there is one: then what the process holds is known as of the latest look.
bool has_object_heap() noexcept;

// The interpreter has reserved this range for its heap. The pool's holder exists.
void add_object_heap(InHook, std::uint64_t address, std::uint64_t bytes) noexcept;

// The program has unmapped this range, whatever was there.
void remove_object_heap(InHook, std::uint64_t address, std::uint64_t bytes) noexcept;

// By how much the pool must grow for an object of this size: it may have as much free already. A
// small one may not fit where it is free, unless most of it is.
std::uint64_t object_heap_growth(std::uint64_t bytes) noexcept;

// A large object was made, or is being freed: counts now, not only from the next look on. (mimalloc
// returns the memory of such an object soon.)
void grow_object_heap(InHook, std::uint64_t bytes) noexcept;
void shrink_object_heap(InHook, std::uint64_t bytes) noexcept;

// Called by the tick. Looks take at most a hundredth of the time.
void update_object_heap(InHook) noexcept;

// Now, for a bundle that is about to be written.
void measure_object_heap(InHook) noexcept;

// Objects of so many bytes were recorded, negative: freed. The pool counts what they hold, and the
// nearer the soft limit, the less they grow until the next look.
void count_object_growth(InHook, std::int64_t bytes) noexcept;

// A new recording begins in a process that was detached from: what it has mapped meanwhile is not
// known.
void forget_object_heap(InHook) noexcept;

// The child has the same heap; its session has counted nothing of it.
void reset_object_heap_after_fork(InHook) noexcept;

}  // namespace oomrec::recorder

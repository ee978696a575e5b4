// The upper ends of stacks that are no thread's own, as coroutines have them, by the page of sp.
//
// Shared by all threads, one word an entry, without a lock: a thread that loses its entry to
// another one finds the end again. When memory between known stacks is unmapped, all entries are
// forgotten.
#pragma once

#include <cstdint>

#include "common/system/hook_scope.h"

namespace oomrec::stack {

inline constexpr std::uint64_t kLargestKnown = 1 << 20;  // from sp to the end

// The end of the stack with this sp, of which all memory in between can be read; 0: not known.
std::uint64_t known_stack_end(InHook, std::uint64_t sp) noexcept;

// Changes when the entries are forgotten.
std::uint64_t known_stacks_generation() noexcept;

// `end` is at most kLargestKnown above the beginning of sp's page. `generation`: from before it was
// found.
void add_known_stack(InHook, std::uint64_t sp, std::uint64_t end,
                     std::uint64_t generation) noexcept;

}  // namespace oomrec::stack

// The parts of capture(), for code_flow, tests and benchmarks.
#pragma once

#include "recorder/stack/modules.h"
#include "recorder/stack/walk_cache.h"

namespace oomrec::stack {

// The library's own addresses, whose frames are removed. start() sets the range to the module that
// contains capture(); a program that links the recorder statically (the unit tests) sets a range
// without its own code.
void set_own_code(const AddressRange&) noexcept;
bool is_own_code(std::uint64_t pc) noexcept;

// The calling thread's native frames, from the hook's caller outwards.
NativeStack program_stack(InHook, ThreadStacks&) noexcept;

}  // namespace oomrec::stack

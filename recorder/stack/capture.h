// What capture() is made of, for tests and benchmarks.
#pragma once

#include "recorder/stack/memo.h"
#include "recorder/stack/modules.h"

namespace oomrec::stack {

// The library's own range of addresses, whose frames are left out. start() sets it to the module
// that holds capture(); a program that links the recorder statically (the unit tests) gives a range
// that holds none of its own code.
void set_own_code(const AddressRange&) noexcept;
bool is_own_code(std::uint64_t pc) noexcept;

// The calling thread's native frames, from the program's call of a hook outwards.
NativeStack program_stack(InHook, ThreadStacks&) noexcept;

}  // namespace oomrec::stack

// One table for the process: address → rule to step out of the frame, and its module.
//
// Filled at first sight of an address, read without a lock, bounded: a full set loses one of its
// entries and finds it again when needed. Cleared when a library is unloaded.
#pragma once

#include "recorder/stack/cfi.h"

namespace oomrec::stack {

void start_rules(InHook) noexcept;

// The rule at `address`, an instruction (for a return address: the byte before it, which is part of
// the call). Some ten nanoseconds when known; without a table every look-up compiles anew.
Rule rule_at(InHook, std::uint64_t address) noexcept;

void clear_rules(InHook) noexcept;

}  // namespace oomrec::stack

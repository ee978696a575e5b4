// Included before all else in the litmus tests: an addition that the model sees, in place of one
// instruction of assembly.
#pragma once

#include <atomic>

#define add_own add_own_unseen
#include "common/machine/instructions.h"
#undef add_own

namespace oomrec::machine {

template <class T>
inline void add_own(std::atomic<T>& word, T delta) noexcept {
  word.store(word.load(std::memory_order_relaxed) + delta, std::memory_order_relaxed);
}

}  // namespace oomrec::machine

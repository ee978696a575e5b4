// Interning: a private hash (parent, frame) → node over the session's trie.
#pragma once

#include "recorder/stack/stack.h"

namespace oomrec::stack {

void start_intern(InHook) noexcept;
void forget_nodes(InHook) noexcept;  // after a fork

}  // namespace oomrec::stack

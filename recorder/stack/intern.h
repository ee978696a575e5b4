// Interning: stacks to nodes of the session's trie, by a private hash of whole prefixes.
//
// The hash of a node covers all frames from the outermost to its own, so that it does not depend on
// node numbers: where the frames of a stack belong in the index is known before any of them is
// looked up. The innermost is looked up first. If it is there, the stack is known.
#pragma once

#include <span>

#include "recorder/stack/stack.h"

namespace oomrec::stack {

// Of the stack that ends in `node`; 0: of none. Reads all of its nodes.
std::uint32_t hash_of_node(std::uint32_t node) noexcept;

// The nodes of `frames`, innermost first, below `parent`, which has `hash`: into their `node`, and
// their hashes. Returns how many have a node, the outermost; fewer than all: the trie is full.
std::uint32_t intern(InHook, std::uint32_t parent, std::uint32_t hash,
                     std::span<MergedFrame> frames) noexcept;

void start_intern(InHook) noexcept;
void reset_nodes(InHook) noexcept;  // after a fork

}  // namespace oomrec::stack

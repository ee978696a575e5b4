// Interning: a private hash (parent, frame) → node over the session's trie, and a small one for
// each thread in front of it.
#pragma once

#include "recorder/stack/stack.h"

namespace oomrec::stack {

// Mixes well in its upper bits.
inline std::uint64_t hash_of(std::uint32_t parent, std::uint64_t frame) noexcept {
  std::uint64_t hash = frame + parent * 0x9e3779b97f4a7c15u;
  hash ^= hash >> 32;
  return hash * 0xbf58476d1ce4e5b9u;
}

// The same as intern(), for a thread that remembers what it found.
inline std::uint32_t intern(InHook hook, NodeMemo& memo, std::uint32_t parent,
                            std::uint64_t frame) noexcept {
  KnownNode& known = memo.nodes[hash_of(parent, frame) >> (64 - NodeMemo::kBits)];
  if (known.frame != frame || known.parent != parent || known.node == 0)
    known = {frame, parent, intern(hook, parent, frame)};
  return known.node;
}

void start_intern(InHook) noexcept;
void forget_nodes(InHook) noexcept;  // after a fork

}  // namespace oomrec::stack

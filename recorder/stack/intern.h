// Interning: a private hash (parent, frame) → node over the session's trie, behind a small cache
// for each thread.
#pragma once

#include "recorder/stack/stack.h"

namespace oomrec::stack {

// Mixes well in its upper bits.
inline std::uint64_t hash_of(std::uint32_t parent, std::uint64_t frame) noexcept {
  std::uint64_t hash = frame + parent * 0x9e3779b97f4a7c15u;
  hash ^= hash >> 32;
  return hash * 0xbf58476d1ce4e5b9u;
}

// The same as intern(), with the thread's cache.
inline std::uint32_t intern(InHook hook, NodeCache& cache, std::uint32_t parent,
                            std::uint64_t frame) noexcept {
  CachedNode& cached = cache.nodes[hash_of(parent, frame) >> (64 - NodeCache::kBits)];
  if (cached.frame != frame || cached.parent != parent || cached.node == 0)
    cached = {frame, parent, intern(hook, parent, frame)};
  return cached.node;
}

void start_intern(InHook) noexcept;
void reset_nodes(InHook) noexcept;  // after a fork

}  // namespace oomrec::stack

// Interning: stacks to nodes of the session's trie, by a private hash of whole prefixes.
//
// The hash of a node covers all frames from the outermost to its own, so that it does not depend on
// node numbers: where the frames of a stack belong in the index is known before any of them is
// looked up. The innermost is looked up first. If it is there, the stack is known.
#pragma once

#include <atomic>
#include <span>

#include "recorder/session/node_states.h"
#include "recorder/stack/stack.h"

namespace oomrec::stack {

// Of the stack that ends in `node`; 0: of none.
std::uint32_t hash_of_node(std::uint32_t node) noexcept;

// The nodes of `frames`, innermost first, below `parent`, which has `hash`: into their `node`, and
// their hashes. Returns how many have a node, the outermost; fewer than all: the trie is full.
std::uint32_t intern(InHook, std::uint32_t parent, std::uint32_t hash,
                     std::span<MergedFrame> frames) noexcept;

// The node of this frame below `parent`, if there is one; 0: there is not.
std::uint32_t find(std::uint32_t parent, std::uint64_t frame) noexcept;

// Gives the numbers of retired nodes back. Holds the trie's lock: while it exists no node is added.
class Retiring {
 public:
  explicit Retiring(InHook) noexcept;
  ~Retiring();
  Retiring(const Retiring&) = delete;
  Retiring& operator=(const Retiring&) = delete;
  explicit operator bool() const noexcept { return locked_; }

  // The number of a retired node (NodeStates::retire) that nothing in the session refers to: it may
  // be another stack's. Returns its parent, which may be a leaf now.
  std::uint32_t use_again(std::uint32_t node) noexcept;

 private:
  const InHook hook_;
  const bool locked_;
};

// Returns when no thread is adding nodes: what they have added is seen from now on, and what this
// thread did is seen by those that add some later.
void await_adders(InHook) noexcept;

// Whether a node has this frame.
bool is_frame_in_use(InHook, std::uint64_t word) noexcept;

inline constinit std::atomic<std::uint32_t> g_nodes_in_use{0};
std::uint64_t nodes_ever() noexcept;  // added so far
std::uint32_t free_nodes() noexcept;  // numbers of nodes that may be used again

void reset_nodes(InHook) noexcept;  // after a fork

}  // namespace oomrec::stack

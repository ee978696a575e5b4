// The trie in the session has no index; ours is private, in shards that grow one by one, and is
// read without a lock. A node that follows its parent, as most do, because the frames of a new
// stack get numbers one after the other, is not in it: a reader tries parent + 1 first.
// So a stack is found from its innermost node that is in the index.
//
// A node that was retired is used again for a frame of another stack, but always below its new
// parent's number: the lowest free one above it, so that chains stay close together.
#include "recorder/stack/intern.h"

#include <atomic>
#include <bit>

#include "common/system/atomics.h"
#include "common/system/mutex.h"
#include "recorder/session/free_numbers.h"
#include "recorder/session/index.h"
#include "recorder/session/node_states.h"
#include "recorder/session/reuse.h"
#include "recorder/session/shortage.h"
#include "recorder/session/writer.h"
#include "recorder/stack/frame_numbers.h"

namespace oomrec::stack {
namespace {

using session::g_node_states;
using session::NodeEntry;
using session::NodeStates;

constexpr std::uint32_t kMaxNode = NodeStates::kMost - 1;

// Small shards: all of one move at once when it grows, in the middle of some event.
constexpr unsigned kShardBits = 3;
constinit session::Index<session::Outgrown::keep, session::InBudget::no> g_index[1 << kShardBits];
constinit session::FreeNumbers g_free;
constinit session::PrivateArray<std::uint32_t, NodeStates::kMost> g_hashes;
constinit system::Mutex g_lock;
constinit std::atomic<std::uint64_t> g_ever{0};

const auto& index_of(std::uint32_t hash) noexcept { return g_index[hash >> (32 - kShardBits)]; }
auto& index_for_change(std::uint32_t hash) noexcept { return g_index[hash >> (32 - kShardBits)]; }

NodeEntry& node_at(std::uint32_t node) noexcept { return session::g_session.nodes.at(node); }
// As it is at one instant: another thread may be using it again.
NodeEntry entry_of(std::uint32_t node) noexcept {
  const std::uint64_t word = session::word_of(node_at(node)).load(std::memory_order_acquire);
  return std::bit_cast<NodeEntry>(word);
}
std::uint64_t word_at(const NodeEntry& entry) noexcept { return word_of_frame(entry.frame); }

constexpr std::uint32_t kFactor = 0x9e3779b1;
std::uint32_t mix(std::uint64_t word) noexcept {
  return static_cast<std::uint32_t>((word ^ word >> 32) * 0xbf58476d1ce4e5b9u >> 32);
}
std::uint32_t hash_of(std::uint32_t outer, std::uint64_t word) noexcept {
  return outer * kFactor + mix(word);
}
// Claims the node if it is the one that is_it() looks for. It is the same before and after, because
// nothing retired it in between.
template <class Is>
bool claims(std::uint32_t node, Is is_it) noexcept {
  for (;;) {
    const NodeStates::Word seen = g_node_states.load(node);
    if (seen == 0 || !is_it()) return false;
    if (g_node_states.claim(node, seen)) [[likely]]
      return true;
  }
}

bool is_child(std::uint32_t node, std::uint32_t parent, std::uint64_t word) noexcept {
  const NodeEntry entry = entry_of(node);
  return entry.parent == parent && word_at(entry) == word;
}

// The node after `parent`, if it is the child with this frame; 0: it is not. Such a child is not in
// the index.
std::uint32_t next_child(std::uint32_t parent, std::uint64_t word) noexcept {
  const std::uint32_t node = parent + 1;
  if (node >= session::g_session.nodes.size()) return 0;
  return claims(node, [&] { return is_child(node, parent, word); }) ? node : 0;
}

std::uint32_t find_child(std::uint32_t parent, std::uint64_t word, std::uint32_t hash) noexcept {
  if (const std::uint32_t node = next_child(parent, word)) return node;
  return index_of(hash).find(hash, [&](std::uint32_t node) {
    return claims(node, [&] { return is_child(node, parent, word); });
  });
}

// In a chain of new nodes each starts with a reference from the child that follows, which saves an
// atomic increment. `by_parent`: the parent has started with one from the new node. `child`: the
// new node starts with one.
struct Counted {
  bool by_parent, child;
};

// The number of a new node below `parent`, in use from now on. Under g_lock. 0: the trie is full.
std::uint32_t new_node(InHook hook, std::uint32_t parent, std::uint32_t frame, std::uint32_t hash,
                       bool counts_child) noexcept {
  auto& nodes = session::g_session.nodes;
  const NodeEntry entry{parent, frame};
  if (const std::uint32_t node = g_free.take(parent + 1)) {
    session::word_of(node_at(node))
        .store(std::bit_cast<std::uint64_t>(entry), std::memory_order_release);
    *g_hashes.find(node) = hash;
    g_node_states.add(node, counts_child);
    return node;
  }
  std::uint32_t node = nodes.size();
  if (node > kMaxNode || !session::g_session.may_add_stacks() ||
      !g_node_states.prepare(hook, node) || !g_hashes.prepare(hook, node) ||
      !nodes.append(hook, node, [&](NodeEntry& added) { added = entry; }))
    return 0;
  *g_hashes.find(node) = hash;
  g_node_states.add(node, counts_child);
  return node;
}

// Gives a node's number back. Under g_lock.
void free_node(InHook hook, std::uint32_t node) noexcept {
  const std::uint32_t frame = node_at(node).frame;
  session::word_of(node_at(node)).store(0, std::memory_order_release);
  give_back_frame(hook, frame);
  g_free.give_back(hook, node);
}

// Adds a node that is not there. Under g_lock. 0: the trie is full.
std::uint32_t add(InHook hook, std::uint32_t parent, std::uint64_t word, std::uint32_t hash,
                  Counted counted) noexcept {
  if (g_nodes_in_use == 0)  // in a sandbox there is no memory later
    for (auto& shard : g_index) shard.prepare(hook);
  const std::uint32_t frame = take_frame(hook, word);
  if (frame == 0) return 0;
  const std::uint32_t node = new_node(hook, parent, frame, hash, counted.child);
  if (node == 0) {
    give_back_frame(hook, frame);
    return 0;
  }
  if (node != parent + 1 && !index_for_change(hash).insert(hook, hash, node)) {
    free_node(hook, node);
    return 0;
  }
  if (!counted.by_parent) g_node_states.refer(parent);
  add_own(g_nodes_in_use, std::uint32_t{1});  // under the lock
  add_own(g_ever, std::uint64_t{1});
  return node;
}

// Fetches what is_stack() is likely to read: the nodes would otherwise be fetched one after the
// other.
void fetch_nodes(std::span<const MergedFrame> frames) noexcept {
  for (const MergedFrame& frame : frames)
    if (const std::uint32_t node = index_of(frame.hash).likely(frame.hash))
      __builtin_prefetch(&node_at(node));
}

// Whether `node` is the innermost of `frames` below `parent`; if so, fills in their nodes.
bool is_stack(std::uint32_t parent, std::span<MergedFrame> frames, std::uint32_t node) noexcept {
  std::uint32_t at = node;
  for (const MergedFrame& frame : frames) {
    if (at == 0) return false;
    const NodeEntry entry = entry_of(at);
    if (word_at(entry) != frame.word) return false;
    at = entry.parent;
  }
  if (at != parent) return false;
  for (MergedFrame& frame : frames) {
    frame.node = node;
    node = node_at(node).parent;
  }
  return true;
}

}  // namespace

std::uint32_t hash_of_node(std::uint32_t node) noexcept {
  const std::uint32_t* const hash = g_hashes.find(node);
  return hash == nullptr ? 0 : *hash;
}

std::uint32_t find(std::uint32_t parent, std::uint64_t frame) noexcept {
  return find_child(parent, frame, hash_of(hash_of_node(parent), frame));
}

std::uint32_t intern(InHook hook, std::uint32_t parent, std::uint64_t frame) noexcept {
  if (!session::g_session.active()) return 0;
  MergedFrame one{};
  one.word = frame;
  return intern(hook, parent, hash_of_node(parent), {&one, 1}) == 1 ? one.node : 0;
}

std::uint32_t intern(InHook hook, std::uint32_t parent, std::uint32_t hash,
                     std::span<MergedFrame> frames) noexcept {
  if (!session::g_session.active() || frames.empty()) return 0;
  for (std::size_t i = frames.size(); i-- != 0;) {
    frames[i].hash = hash = hash_of(hash, frames[i].word);
    index_of(hash).prefetch(hash);
  }
  const auto count = static_cast<std::uint32_t>(frames.size());
  std::uint32_t fresh = 0;  // so many innermost ones are not there
  fetch_nodes(frames);
  while (fresh != count) {
    const std::span<MergedFrame> known = frames.subspan(fresh);
    const std::uint32_t found =
        index_of(known[0].hash).find(known[0].hash, [&](std::uint32_t node) {
          return claims(node, [&] { return is_stack(parent, known, node); });
        });
    if (found != 0) break;
    ++fresh;
  }
  std::uint32_t outer = fresh == count ? parent : frames[fresh].node;
  while (fresh != 0) {
    const std::uint32_t node = next_child(outer, frames[fresh - 1].word);
    if (node == 0) break;
    frames[--fresh].node = outer = node;
  }
  if (fresh == 0) return count;
  const system::MutexGuard guard(g_lock);
  if (!guard) return count - fresh;
  bool is_known = true;     // the stack that ends in `outer`, before this call
  bool is_counted = false;  // by `outer`: the next one
  for (; fresh != 0; --fresh) {
    MergedFrame& frame = frames[fresh - 1];
    std::uint32_t node = 0;
    if (is_known) node = find_child(outer, frame.word, frame.hash);
    is_known = node != 0;
    if (!is_known) {
      node =
          add(hook, outer, frame.word, frame.hash, {.by_parent = is_counted, .child = fresh > 1});
      if (node == 0) {
        if (is_counted) g_node_states.release(outer);
        session::count_shortage();
        break;
      }
      is_counted = fresh > 1;
    }
    frame.node = outer = node;
  }
  return count - fresh;
}

Retiring::Retiring(InHook hook) noexcept : hook_(hook), locked_(g_lock.lock()) {}
Retiring::~Retiring() {
  if (locked_) g_lock.unlock();
}

std::uint32_t Retiring::use_again(std::uint32_t node) noexcept {
  const std::uint32_t parent = node_at(node).parent;
  if (node != parent + 1) {
    const std::uint32_t hash = hash_of_node(node);
    index_for_change(hash).erase(hash, [&](std::uint32_t number) { return number == node; });
  }
  free_node(hook_, node);
  g_node_states.release(parent);
  add_own(g_nodes_in_use, ~std::uint32_t{0});
  return parent;
}

void await_adders(InHook) noexcept { const system::MutexGuard guard(g_lock); }

bool is_frame_in_use(InHook, std::uint64_t word) noexcept {
  const system::MutexGuard guard(g_lock);
  return !guard || has_frame(word);
}

std::uint64_t nodes_ever() noexcept { return g_ever.load(std::memory_order_relaxed); }
std::uint32_t free_nodes() noexcept { return g_free.count(); }

void reset_nodes(InHook hook) noexcept {
  g_lock.unlock();  // its owner does not exist in the child
  reset_frame_numbers(hook);
  for (auto& shard : g_index) shard.reset(hook);
  g_free.reset(hook);
  g_node_states.reset(hook);
  g_hashes.reset(hook);
  g_nodes_in_use.store(0, std::memory_order_relaxed);
}

}  // namespace oomrec::stack

// The trie in the session has no index; ours is private, contains node numbers only, and is read
// without a lock. It doubles when three quarters full. An outgrown table stays mapped, because
// another thread may be reading it, but its memory is released: a thread that then finds nothing in
// it takes the lock and searches the new one.
#include "recorder/stack/intern.h"

#include <atomic>
#include <cstring>

#include "common/system/memory.h"
#include "common/system/mutex.h"
#include "common/system/syscalls.h"
#include "recorder/session/writer.h"

namespace oomrec::stack {
namespace {

// The lower 24 bits are a node, the upper 8 those of its hash: reading a node costs a cache line,
// so do it only when it is almost certainly the right one. 0: free.
using Slot = std::atomic<std::uint32_t>;
constexpr unsigned kNodeBits = 24;
constexpr std::uint32_t kMaxNode = (1u << kNodeBits) - 1;  // 256 MiB of them

struct Index {
  std::uint64_t mask;
  std::uint64_t used;  // under g_lock
  Slot slots[];
};

constexpr std::uint64_t kFirstSlots = 8 * 1024;

constinit std::atomic<Index*> g_index{nullptr};
constinit system::Mutex g_lock;

session::Node& node_at(std::uint32_t node) noexcept { return session::g_session.nodes.at(node); }

std::uint32_t hash_of(std::uint32_t outer, std::uint64_t frame) noexcept {
  std::uint64_t hash = frame + outer * 0x9e3779b97f4a7c15u;
  hash ^= hash >> 32;
  return static_cast<std::uint32_t>((hash * 0xbf58476d1ce4e5b9u) >> 32);
}
// Of the stack that ends in `node`; 0: of none.
std::uint32_t hash_of(std::uint32_t node) noexcept { return node == 0 ? 0 : node_at(node).hash; }

// The node with this hash for which is_it(node) holds; 0: none.
template <class Is>
std::uint32_t find(const Index& index, std::uint32_t hash, Is is_it) noexcept {
  for (std::uint64_t at = hash;; ++at) {
    const std::uint32_t value = index.slots[at & index.mask].load(std::memory_order_acquire);
    if (value == 0) return 0;
    if (((value ^ hash) & ~kMaxNode) == 0 && is_it(value & kMaxNode)) return value & kMaxNode;
  }
}

std::uint32_t find_child(const Index& index, std::uint32_t parent, std::uint64_t frame,
                         std::uint32_t hash) noexcept {
  return find(index, hash, [&](std::uint32_t node) {
    const session::Node& entry = node_at(node);
    return entry.frame == frame && entry.parent == parent;
  });
}

// A node that is not there.
void put(Index& index, std::uint32_t hash, std::uint32_t node) noexcept {
  std::uint64_t at = hash;
  while (index.slots[at & index.mask].load(std::memory_order_relaxed) != 0) ++at;
  index.slots[at & index.mask].store(node | (hash & ~kMaxNode), std::memory_order_release);
}

std::uint64_t index_bytes(std::uint64_t slots) noexcept {
  return sizeof(Index) + slots * sizeof(Slot);
}

Index* make_index(std::uint64_t slots) noexcept {
  auto* index = static_cast<Index*>(system::map_private(index_bytes(slots)));
  if (index != nullptr) index->mask = slots - 1;
  return index;
}

// In the order of nodes, which are read one after the other; their slots are anywhere.
void put_all(Index& index, std::uint32_t end) noexcept {
  constexpr std::uint32_t kAhead = 16;
  for (std::uint32_t node = 1; node < end; ++node) {
    if (node + kAhead < end)
      __builtin_prefetch(&index.slots[node_at(node + kAhead).hash & index.mask], 1);
    put(index, node_at(node).hash, node);
  }
}

// The index, grown if needed for one more node. Under g_lock. nullptr: no memory, and the index is
// as full as it may get.
Index* index_for_insert() noexcept {
  Index* index = g_index.load(std::memory_order_relaxed);
  const std::uint64_t slots = index == nullptr ? 0 : index->mask + 1;
  if (index != nullptr && index->used < slots / 4 * 3) return index;
  Index* larger = make_index(index == nullptr ? kFirstSlots : 2 * slots);
  if (larger == nullptr) {
    return index != nullptr && index->used < slots / 16 * 15 ? index : nullptr;
  }
  if (index != nullptr) {
    larger->used = index->used;
    put_all(*larger, static_cast<std::uint32_t>(index->used) + 1);
  }
  g_index.store(larger, std::memory_order_release);
  if (index_bytes(slots) > 2 * session::kPageBytes)  // all but the page with the mask
    system::call(SYS_madvise, reinterpret_cast<std::byte*>(index) + session::kPageBytes,
                 index_bytes(slots) - session::kPageBytes, MADV_DONTNEED);
  return larger;
}

// Finds or adds a node. Under g_lock. 0: the trie is full.
std::uint32_t find_or_add(InHook hook, std::uint32_t parent, std::uint64_t frame,
                          std::uint32_t hash) noexcept {
  Index* const index = index_for_insert();
  if (index == nullptr) return 0;
  if (const std::uint32_t node = find_child(*index, parent, frame, hash)) return node;
  std::uint32_t node;
  auto& nodes = session::g_session.nodes;
  if (nodes.size() > kMaxNode) return 0;
  if (!nodes.append(hook, node, [&](session::Node& entry) { entry = {parent, hash, frame}; })) {
    return 0;
  }
  put(*index, hash, node);
  ++index->used;
  return node;
}

// Fetches what is_stack() is likely to read: the nodes would otherwise be fetched one after the
// other. Each `node` of the frames is its hash.
void fetch_nodes(const Index& index, std::span<const MergedFrame> frames) noexcept {
  for (const MergedFrame& frame : frames) {
    const std::uint32_t value =
        index.slots[frame.node & index.mask].load(std::memory_order_relaxed);
    if (value != 0 && ((value ^ frame.node) & ~kMaxNode) == 0)
      __builtin_prefetch(&node_at(value & kMaxNode));
  }
}

// Whether `node` is the innermost of `frames` below `parent`; if so, fills in their nodes. Each
// `node` of theirs is the hash until then, which is restored if not.
bool is_stack(std::uint32_t parent, std::span<MergedFrame> frames, std::uint32_t node) noexcept {
  std::uint32_t at = node;
  for (const MergedFrame& frame : frames) {
    if (at == 0) return false;
    const session::Node& entry = node_at(at);
    if (entry.frame != frame.word) return false;
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

void start_intern(InHook) noexcept {
  const system::MutexGuard guard(g_lock);
  if (guard && session::g_session.active()) index_for_insert();
}

std::uint32_t intern(InHook hook, std::uint32_t parent, std::uint64_t frame) noexcept {
  MergedFrame one{frame, 0, 0, 0};
  return intern(hook, parent, {&one, 1}) == 1 ? one.node : 0;
}

std::uint32_t intern(InHook hook, std::uint32_t parent, std::span<MergedFrame> frames) noexcept {
  if (!session::g_session.active() || frames.empty()) return 0;
  const Index* const index = g_index.load(std::memory_order_acquire);
  std::uint32_t hash = hash_of(parent);
  for (std::size_t i = frames.size(); i-- != 0;) {
    frames[i].node = hash = hash_of(hash, frames[i].word);
    if (index != nullptr) __builtin_prefetch(&index->slots[hash & index->mask]);
  }
  const auto count = static_cast<std::uint32_t>(frames.size());
  std::uint32_t fresh = 0;  // so many innermost ones are not there
  if (index == nullptr)
    fresh = count;
  else
    fetch_nodes(*index, frames);
  while (fresh != count) {
    const std::span<MergedFrame> known = frames.subspan(fresh);
    if (find(*index, known[0].node,
             [&](std::uint32_t node) { return is_stack(parent, known, node); }) != 0)
      break;
    ++fresh;
  }
  if (fresh == 0) return count;
  const system::MutexGuard guard(g_lock);
  if (!guard) return count - fresh;
  std::uint32_t outer = fresh == count ? parent : frames[fresh].node;
  for (; fresh != 0; --fresh) {
    MergedFrame& frame = frames[fresh - 1];
    const std::uint32_t node = find_or_add(hook, outer, frame.word, frame.node);
    if (node == 0) break;
    frame.node = outer = node;
  }
  return count - fresh;
}

void reset_nodes(InHook) noexcept {
  g_lock.unlock();  // its owner does not exist in the child
  Index* const index = g_index.load(std::memory_order_relaxed);
  if (index == nullptr) return;
  const std::uint64_t mask = index->mask;
  const std::size_t bytes = index_bytes(mask + 1);
  if (system::call(SYS_madvise, index, bytes, MADV_DONTNEED) != 0) {
    std::memset(static_cast<void*>(index), 0, bytes);
  }
  index->mask = mask;
}

}  // namespace oomrec::stack

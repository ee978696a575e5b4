// Finds or adds the trie's node for (parent, frame).
//
// The trie in the session has no index; ours is private, contains node numbers only, and is read
// without a lock. It doubles when three quarters full. An outgrown table stays mapped, because
// another thread may be reading it (together they are no larger than the current one).
#include "recorder/stack/intern.h"

#include <atomic>
#include <cstring>

#include "common/system/memory.h"
#include "common/system/mutex.h"
#include "common/system/syscalls.h"
#include "recorder/session/writer.h"

namespace oomrec::stack {
namespace {

// The lower 24 bits are a node, the upper 8 a part of its hash: reading a node costs a cache line,
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

// The slot of (parent, frame), or the free one where it belongs: then node is 0.
struct IndexSlot {
  std::uint64_t slot;
  std::uint32_t node;
  std::uint32_t check;  // in the upper 8 bits
};
IndexSlot find(const Index& index, std::uint32_t parent, std::uint64_t frame) noexcept {
  const std::uint64_t hash = hash_of(parent, frame);
  const auto check = static_cast<std::uint32_t>(hash >> 32) & ~kMaxNode;
  for (std::uint64_t at = hash >> 24;; ++at) {
    const std::uint64_t slot = at & index.mask;
    const std::uint32_t value = index.slots[slot].load(std::memory_order_acquire);
    if (value == 0) return {slot, 0, check};
    if ((value & ~kMaxNode) != check) continue;
    const session::Node& entry = session::g_session.nodes.at(value & kMaxNode);
    if (entry.frame == frame && entry.parent == parent) return {slot, value & kMaxNode, check};
  }
}

void put(Index& index, const IndexSlot& found, std::uint32_t node) noexcept {
  index.slots[found.slot].store(node | found.check, std::memory_order_release);
}

Index* make_index(std::uint64_t slots) noexcept {
  auto* index = static_cast<Index*>(system::map_private(sizeof(Index) + slots * sizeof(Slot)));
  if (index != nullptr) index->mask = slots - 1;
  return index;
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
  for (std::uint64_t i = 0; i < slots; ++i) {
    const std::uint32_t node = index->slots[i].load(std::memory_order_relaxed) & kMaxNode;
    if (node == 0) continue;
    const session::Node& entry = session::g_session.nodes.at(node);
    put(*larger, find(*larger, entry.parent, entry.frame), node);
  }
  larger->used = index == nullptr ? 0 : index->used;
  g_index.store(larger, std::memory_order_release);
  return larger;
}

std::uint32_t add(InHook hook, std::uint32_t parent, std::uint64_t frame) noexcept {
  const system::MutexGuard guard(g_lock);
  if (!guard) return 0;
  Index* index = index_for_insert();
  if (index == nullptr) return 0;
  const IndexSlot found = find(*index, parent, frame);
  if (found.node != 0) return found.node;
  std::uint32_t node;
  auto& nodes = session::g_session.nodes;
  const std::uint32_t depth = parent == 0 ? 1 : nodes.at(parent).depth + 1;
  if (nodes.size() > kMaxNode) return 0;
  if (!nodes.append(hook, node, [&](session::Node& entry) { entry = {parent, depth, frame}; })) {
    return 0;
  }
  put(*index, found, node);
  ++index->used;
  return node;
}

}  // namespace

void start_intern(InHook) noexcept {
  const system::MutexGuard guard(g_lock);
  if (guard && session::g_session.active()) index_for_insert();
}

std::uint32_t intern(InHook hook, std::uint32_t parent, std::uint64_t frame) noexcept {
  if (!session::g_session.active()) return 0;
  if (Index* index = g_index.load(std::memory_order_acquire)) {
    const IndexSlot found = find(*index, parent, frame);
    if (found.node != 0) return found.node;
  }
  return add(hook, parent, frame);
}

void reset_nodes(InHook) noexcept {
  g_lock.unlock();  // its owner does not exist in the child
  Index* const index = g_index.load(std::memory_order_relaxed);
  if (index == nullptr) return;
  const std::uint64_t mask = index->mask;
  const std::size_t bytes = sizeof(Index) + (mask + 1) * sizeof(Slot);
  if (system::call(SYS_madvise, index, bytes, MADV_DONTNEED) != 0) {
    std::memset(static_cast<void*>(index), 0, bytes);
  }
  index->mask = mask;
}

}  // namespace oomrec::stack

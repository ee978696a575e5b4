// The trie in the session has no index; ours is private, contains node numbers only, and is read
// without a lock. A node that follows its parent, as most do, because the frames of a new stack get
// numbers one after the other, is not in it: who has the parent looks at the next number. So a
// stack is found from its innermost node that is in the index. It doubles when 13/16 full. An
// outgrown table stays mapped, because another thread may be reading it, but its memory is
// released: a thread that then finds nothing in it takes the lock and searches the new one.
#include "recorder/stack/intern.h"

#include <atomic>
#include <cstring>

#include "common/machine/page.h"
#include "common/system/memory.h"
#include "common/system/mutex.h"
#include "common/system/syscalls.h"
#include "recorder/session/writer.h"
#include "recorder/stack/frame_numbers.h"

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

session::NodeEntry& node_at(std::uint32_t node) noexcept {
  return session::g_session.nodes.at(node);
}
std::uint64_t word_at(const session::NodeEntry& entry) noexcept {
  return word_of_frame(entry.frame);
}

// A polynomial of the frames' hashes: it can be computed from the innermost frame outwards, too.
constexpr std::uint32_t kFactor = 0x9e3779b1;
std::uint32_t mix(std::uint64_t word) noexcept {
  return static_cast<std::uint32_t>((word ^ word >> 32) * 0xbf58476d1ce4e5b9u >> 32);
}
std::uint32_t hash_of(std::uint32_t outer, std::uint64_t word) noexcept {
  return outer * kFactor + mix(word);
}

// The node with this hash for which is_it(node) holds; 0: none.
template <class Is>
std::uint32_t find(const Index& index, std::uint32_t hash, Is is_it) noexcept {
  for (std::uint64_t at = hash;; ++at) {
    const std::uint32_t value = index.slots[at & index.mask].load(std::memory_order_acquire);
    if (value == 0) return 0;
    if (((value ^ hash) & ~kMaxNode) == 0 && is_it(value & kMaxNode)) return value & kMaxNode;
  }
}

// The node after `parent`, if it is the child with this frame; 0: it is not. Such a child is not in
// the index.
std::uint32_t next_child(std::uint32_t parent, std::uint64_t word) noexcept {
  const std::uint32_t node = parent + 1;
  if (node >= session::g_session.nodes.size()) return 0;
  const session::NodeEntry& entry = node_at(node);
  return entry.parent == parent && word_at(entry) == word ? node : 0;
}

std::uint32_t find_child(const Index* index, std::uint32_t parent, std::uint64_t word,
                         std::uint32_t hash) noexcept {
  if (const std::uint32_t node = next_child(parent, word)) return node;
  if (index == nullptr) return 0;
  return find(*index, hash, [&](std::uint32_t node) {
    const session::NodeEntry& entry = node_at(node);
    return entry.parent == parent && word_at(entry) == word;
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

// The first one is made for programs that may have few stacks. Later ones are filled at once.
Index* make_index(std::uint64_t slots) noexcept {
  const bool is_first = slots == kFirstSlots;
  auto* index = static_cast<Index*>(system::map_private(
      index_bytes(slots), is_first ? system::Pages::untouched : system::Pages::populated));
  if (index != nullptr) index->mask = slots - 1;
  return index;
}

// Puts those of nodes 1 … end − 1 that belong there into an empty index. In their order: they are
// read one after the other, and their parents are near; their slots are anywhere. False: no memory.
bool put_all(Index& index, std::uint32_t end) noexcept {
  constexpr std::uint32_t kAhead = 16;
  const std::size_t bytes = end * sizeof(std::uint32_t);
  auto* const hashes =
      static_cast<std::uint32_t*>(system::map_private(bytes, system::Pages::populated));
  if (hashes == nullptr) return false;
  const auto prepare = [&](std::uint32_t node) {
    const session::NodeEntry& entry = node_at(node);
    hashes[node] = hash_of(hashes[entry.parent], word_at(entry));
    __builtin_prefetch(&index.slots[hashes[node] & index.mask], 1);
  };
  for (std::uint32_t node = 1; node < end && node <= kAhead; ++node) prepare(node);
  for (std::uint32_t node = 1; node < end; ++node) {
    if (node + kAhead < end) prepare(node + kAhead);
    if (node_at(node).parent == node - 1) continue;
    put(index, hashes[node], node);
    ++index.used;
  }
  system::unmap(hashes, bytes);
  return true;
}

// The index, grown if needed for one more node. Under g_lock. nullptr: no memory, and the index is
// as full as it may get.
Index* index_for_insert() noexcept {
  Index* const index = g_index.load(std::memory_order_relaxed);
  const std::uint64_t slots = index == nullptr ? 0 : index->mask + 1;
  if (index != nullptr && index->used < slots / 16 * 13) return index;
  const std::uint64_t more = index == nullptr ? kFirstSlots : 2 * slots;
  Index* larger = make_index(more);
  if (larger != nullptr && !put_all(*larger, session::g_session.nodes.size())) {
    system::unmap(larger, index_bytes(more));
    larger = nullptr;
  }
  if (larger == nullptr) return index != nullptr && index->used < slots / 16 * 15 ? index : nullptr;
  g_index.store(larger, std::memory_order_release);
  const std::uint64_t page = machine::page_bytes();
  if (index_bytes(slots) > 2 * page)  // all but the page with the mask
    system::call(SYS_madvise, reinterpret_cast<std::byte*>(index) + page, index_bytes(slots) - page,
                 MADV_DONTNEED);
  return larger;
}

// Adds a node that is not there. Under g_lock. 0: the trie is full.
std::uint32_t add(InHook hook, std::uint32_t parent, std::uint64_t word,
                  std::uint32_t hash) noexcept {
  auto& nodes = session::g_session.nodes;
  std::uint32_t node = nodes.size();
  if (node > kMaxNode) return 0;
  const bool is_next = node == parent + 1;
  // The first node makes the index, although it is not in it: in a sandbox there is no memory
  // later.
  const bool has_index = g_index.load(std::memory_order_relaxed) != nullptr;
  Index* const index = is_next && has_index ? nullptr : index_for_insert();
  const std::uint32_t frame = number_of_frame(hook, word);
  if ((!is_next && index == nullptr) || frame == 0 ||
      !nodes.append(hook, node, [&](session::NodeEntry& entry) {
        entry = {parent, frame};
      }))
    return 0;
  if (is_next) return node;
  put(*index, hash, node);
  ++index->used;
  return node;
}

// Fetches what is_stack() is likely to read: the nodes would otherwise be fetched one after the
// other.
void fetch_nodes(const Index& index, std::span<const MergedFrame> frames) noexcept {
  for (const MergedFrame& frame : frames) {
    const std::uint32_t value =
        index.slots[frame.hash & index.mask].load(std::memory_order_relaxed);
    if (value != 0 && ((value ^ frame.hash) & ~kMaxNode) == 0)
      __builtin_prefetch(&node_at(value & kMaxNode));
  }
}

// Whether `node` is the innermost of `frames` below `parent`; if so, fills in their nodes.
bool is_stack(std::uint32_t parent, std::span<MergedFrame> frames, std::uint32_t node) noexcept {
  std::uint32_t at = node;
  for (const MergedFrame& frame : frames) {
    if (at == 0) return false;
    const session::NodeEntry& entry = node_at(at);
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

void start_intern(InHook) noexcept {
  const system::MutexGuard guard(g_lock);
  if (guard && session::g_session.active()) index_for_insert();
}

std::uint32_t hash_of_node(std::uint32_t node) noexcept {
  std::uint32_t hash = 0;
  for (std::uint32_t factor = 1; node != 0; factor *= kFactor) {
    const session::NodeEntry& entry = node_at(node);
    hash += factor * mix(word_at(entry));
    node = entry.parent;
  }
  return hash;
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
  const Index* const index = g_index.load(std::memory_order_acquire);
  for (std::size_t i = frames.size(); i-- != 0;) {
    frames[i].hash = hash = hash_of(hash, frames[i].word);
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
    if (find(*index, known[0].hash,
             [&](std::uint32_t node) { return is_stack(parent, known, node); }) != 0)
      break;
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
  bool is_known = true;  // the stack that ends in `outer`, before this call
  for (; fresh != 0; --fresh) {
    MergedFrame& frame = frames[fresh - 1];
    std::uint32_t node = 0;
    if (is_known)
      node = find_child(g_index.load(std::memory_order_relaxed), outer, frame.word, frame.hash);
    is_known = node != 0;
    if (node == 0) node = add(hook, outer, frame.word, frame.hash);
    if (node == 0) break;
    frame.node = outer = node;
  }
  return count - fresh;
}

void reset_nodes(InHook hook) noexcept {
  g_lock.unlock();  // its owner does not exist in the child
  reset_frame_numbers(hook);
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

#include "recorder/events/heap.h"

#include "recorder/events/in_flight.h"
#include "recorder/fault_injection/fault_injection.h"
#include "recorder/process/inherited.h"
#include "recorder/session/writer.h"
#include "recorder/stack/stack.h"
#include "recorder/state/clock.h"
#include "recorder/state/counters.h"
#include "recorder/state/node_scope.h"
#include "recorder/state/state.h"
#include "recorder/state/thread_state.h"

namespace oomrec::recorder {

using session::g_session;

// In exact mode small blocks go to the side table, and their holders' figures to the thread's own
// sums. So no thread writes what another one writes, too.
//
// A block is temporary if its thread frees it before it allocates another. Only exact mode can
// tell, because it sees every allocation. A realloc counts as a free and an allocation, even if it
// fails.

namespace {

// How a block is recorded.
struct Share {
  std::uint32_t weight;  // how many blocks it represents; 0: not recorded
  std::uint8_t flags;    // of its holder
};

Share share_of(ThreadState& thread, std::uint64_t bytes) noexcept {
  if (exact() || bytes >= g_state.large_bytes.load(std::memory_order_relaxed)) return {1, 0};
  if (!thread.sampler.take(bytes)) [[likely]]
    return {0, 0};
  return {thread.sampler.weight(bytes, g_state.interval_bytes.load(std::memory_order_relaxed)),
          session::kHolderEstimated};
}

// Whether the thread has allocated nothing since this block; `last` is its latest exactly recorded
// block. True only once, because another thread may get the address next. Never true while
// sampling, which does not see every later allocation.
bool is_temporary(std::uint64_t& last, std::uint64_t address) noexcept {
  if (last != address) return false;
  last = 0;
  return exact();
}

// --- Small blocks, recorded exactly -------------------------------------------------------------

bool grow(InHook hook, ThreadState& thread, std::uint32_t node, Api api,
          std::uint64_t bytes) noexcept {
  return thread.sums.grow(hook, g_state.holders, node, api, bytes);
}

// `thread` may be nullptr. Always inlined: a call would cost every free a nanosecond.
[[gnu::always_inline]] inline void shrink(InHook hook, ThreadState* thread, std::uint32_t node,
                                          std::uint64_t bytes, bool temporary) noexcept {
  if (thread != nullptr) return thread->sums.shrink(hook, g_state.holders, node, bytes, temporary);
  live::HolderSums::shrink_at_once(hook, g_state.holders, node, bytes, temporary);
}

// The block's word in the side table, which is prefetched; nullptr: it does not go there.
std::atomic<std::uint64_t>* small_word(InHook hook, const Block& block) noexcept {
  if (!exact() || !g_state.small_blocks.takes(block.usable_bytes) || block.gap_bytes != 0 ||
      block.space != Space::heap)
    return nullptr;
  std::atomic<std::uint64_t>* const word = g_state.small_blocks.word_for(hook, block.address);
  if (word != nullptr) __builtin_prefetch(word, 1);
  return word;
}

bool insert_small(InHook hook, ThreadState& thread, const Block& block, std::uint32_t node,
                  std::atomic<std::uint64_t>& word) noexcept {
  if (node >= session::kSmallBlockNodes || !grow(hook, thread, node, block.api, block.usable_bytes))
    return false;
  thread.last_block = block.address;
  const std::uint64_t before = word.load(std::memory_order_relaxed);
  live::SideTable::store(word, g_state.small_blocks.pack(
                                   {block.address, static_cast<std::uint32_t>(block.usable_bytes),
                                    node, thread.birth_s()}));
  if (before != 0) [[unlikely]] {  // the previous block's free passed no hook
    const session::SmallBlock gone = session::unpacked(before, 0);
    shrink(hook, &thread, gone.node, gone.bytes, false);
  }
  return true;
}

// If the realloc that releases a block fails, the block is its stack's again.
void keep_released(ThreadState* thread, std::uint32_t node) noexcept {
  if (thread == nullptr || !thread->reallocating) return;
  thread->released_node.store(node, std::memory_order_release);
  session::g_node_states.touch(node);
}

// `thread` may be nullptr. False: the side table has no such block.
bool remove_small(InHook hook, ThreadState* thread, Released& released) noexcept {
  std::atomic<std::uint64_t>* const word = g_state.small_blocks.find_word(released.address);
  if (word == nullptr) return false;
  const session::SmallBlock block =
      g_state.small_blocks.unpack(word->load(std::memory_order_relaxed), released.address);
  if (block.node == 0) return false;
  keep_released(thread, block.node);
  word->store(0, std::memory_order_relaxed);
  shrink(hook, thread, block.node, block.bytes,
         thread != nullptr && is_temporary(thread->last_block, released.address));
  released.bytes = block.bytes;
  released.node = block.node;
  released.weight = 1;
  released.birth_s = block.birth_s;
  return true;
}

// --- All others ---------------------------------------------------------------------------------

void shrink_holder(InHook hook, const live::Block& block) noexcept {
  g_state.holders.shrink(hook, block.holder, block.bytes * block.weight, block.weight);
}

bool insert(InHook hook, ThreadState& thread, const Block& block, std::uint32_t node,
            Share share) noexcept {
  const std::uint32_t holder =
      g_state.holders.find_or_add(hook, node, block.space, block.api, share.flags);
  live::Block replaced;
  if (holder == 0 || !g_state.blocks.insert(hook,
                                            {block.address, block.taken_bytes(), holder,
                                             share.weight, thread.birth_s(), block.gap_bytes},
                                            replaced)) {
    return false;
  }
  if (replaced.address != 0) shrink_holder(hook, replaced);
  if (exact()) thread.last_block_of(block.space) = block.address;
  g_state.holders.grow(hook, holder, block.taken_bytes() * share.weight, share.weight);
  return true;
}

// `thread` may be nullptr.
void remove(InHook hook, ThreadState* thread, Space space, Released& released) noexcept {
  live::Block block;
  if (!g_state.blocks.may_hold(released.address) ||
      !g_state.blocks.remove(hook, released.address, block)) {
    return;
  }
  keep_released(thread, g_session.holders.at(block.holder).node);
  if (thread != nullptr && thread->reallocating)
    replace_in_flight(*thread->lane, block.holder, block.bytes * block.weight);
  if (thread != nullptr && is_temporary(thread->last_block_of(space), released.address))
    g_state.holders.add_temporary(hook, block.holder, 1);
  shrink_holder(hook, block);  // last: without blocks the holder may be another stack's
  released.bytes = block.bytes;
  released.holder = block.holder;
  released.weight = block.weight;
  released.birth_s = block.birth_s;
  released.gap_bytes = block.gap_bytes;
}

// A table is full. It may have capacity for this block once exact recording ends.
[[gnu::cold]] void retry_sampled(InHook hook, ThreadState& thread, const Block& block,
                                 std::uint32_t node, Share share) noexcept {
  if (!exact()) return drop();
  fall_back_to_sampling();
  if (!insert(hook, thread, block, node, share)) drop();
}

// For a block of PyTorch's the event also has the GPU.
void append(ThreadState& thread, EventKind kind, const Block& block, std::uint32_t node) noexcept {
  const std::uint64_t address = live::address_of(block.address);
  if (block.device != 0) [[unlikely]] {
    append_device_event(thread, kind, block.api, block.space, block.device, address, block.bytes,
                        node);
  } else {
    append_event(thread, kind, block.api, address, block.bytes, node);
  }
}

[[gnu::noinline]] void record_block(InHook hook, ThreadState& thread, const Block& block,
                                    Share share) noexcept {
  maybe_read_clock(hook, thread);
  const NodeScope nodes{hook, &thread};
  std::atomic<std::uint64_t>* const word = small_word(hook, block);
  // Of an exact recording's small blocks it would cost more than the rest.
  const stack::Waiting waiting =
      exact() && word != nullptr ? stack::Waiting::left_out : stack::Waiting::included;
  const std::uint32_t node = stack::capture(hook, thread.stacks, thread.root(hook), waiting);
  thread.mark_served(node);
  const bool small = word != nullptr && insert_small(hook, thread, block, node, *word);
  if (!small && !insert(hook, thread, block, node, share))
    retry_sampled(hook, thread, block, node, share);
  if (block.bytes >= kInFlightBytes) end_in_flight(*thread.lane);
  if (exact() && session::g_session.arena.is_short()) [[unlikely]]
    fall_back_to_sampling();
  tally_allocation(thread, block.api, block.bytes, share.weight);
  append(thread, EventKind::allocate, block, node);
}

// The block is not recorded. In a fork's child it may be the parent's.
void release_unrecorded(InHook hook, Space space, std::uint64_t usable_bytes) noexcept {
  if (space != Space::heap) return;
  if (g_state.inherited_holder == 0 && phase() != Phase::waiting) return;
  // A smaller one may as well be a block of our own that was not sampled.
  if (exact() || usable_bytes >= g_state.large_bytes.load(std::memory_order_relaxed) + 64)
    release_inherited(hook, usable_bytes);
}

// Removes the block at released.address from the recording, if it has one, and fills in its
// figures. `thread` may be nullptr.
[[gnu::noinline]] void remove_block(InHook hook, ThreadState* thread, Space space, Api api,
                                    std::uint32_t device, Released& released) noexcept {
  if (!remove_small(hook, thread, released)) remove(hook, thread, space, released);
  if (released.usable_bytes == 0) released.usable_bytes = released.bytes;
  if (released.weight == 0) release_unrecorded(hook, space, released.usable_bytes);
  if (thread == nullptr || (released.weight == 0 && !exact())) return;
  maybe_read_clock(hook, *thread);
  if (!thread->reallocating)  // a realloc is one call, tallied with its new block
    tally_api(*thread, api, released.bytes, released.weight != 0 ? released.weight : 1);
  append(*thread, EventKind::free, {space, api, released.address, released.bytes, 0, device}, 0);
}

// Whether the thread repeats the request for a block that the limit has refused, in the same
// function called from the same place: as Ruby does once it has collected garbage, and a loop that
// goes on regardless. The reserve is for what else follows a failure.
bool asks_again(InHook hook, ThreadState* thread, const Request& request) noexcept {
  if (thread == nullptr) return false;
  const FailedRequest& failed = thread->failed;
  if (failed.time_ns == 0 || failed.by != FailedBy::recorder || failed.request.rule != 0 ||
      failed.request.space != request.space || failed.request.bytes != request.bytes)
    return false;
  const NodeScope scope{hook, thread};
  const std::uint32_t node = stack::capture(hook, thread->stacks, thread->root(hook));
  if (node == 0 || failed.node == 0) return false;
  auto& nodes = session::g_session.nodes;
  return nodes.at(node).parent == nodes.at(failed.node).parent;
}

// A request beyond the limit.
[[gnu::cold, gnu::noinline]] bool admits_from_reserve(InHook hook, ThreadState* thread,
                                                      const Request& request, std::int64_t live,
                                                      std::uint64_t counted_bytes) noexcept {
  const bool mapped = request.space == Space::map;
  if (mapped || !asks_again(hook, thread, request))
    return g_state.limit.admits(live, counted_bytes, mapped);
  g_state.limit.refuse(live);
  return false;
}

}  // namespace

void set_block_distance(std::uint32_t shift) noexcept { g_state.small_blocks.start(shift); }

bool admits(InHook hook, Request& request, std::uint64_t counted_bytes) noexcept {
  if (!g_state.has_limit_or_rules.load(std::memory_order_relaxed) || phase() == Phase::off)
    return true;
  request.rule = failing_rule(hook, request);
  if (request.rule != 0) return false;
  if (counted_bytes == 0) return true;
  ThreadState* const thread = current_thread(hook);
  const std::int64_t live = live_bytes(thread);
  return g_state.limit.is_within(live, counted_bytes) ||
         admits_from_reserve(hook, thread, request, live, counted_bytes);
}

void on_allocate(InHook hook, const Block& block) noexcept {
  if (phase() == Phase::off) return;
  ThreadState* thread = current_thread(hook);
  if (thread == nullptr) [[unlikely]]
    thread = thread_for(hook, block.bytes);
  if (thread != nullptr) [[likely]] {
    const Share share = share_of(*thread, block.bytes + block.gap_bytes);
    if (share.weight != 0) [[unlikely]]
      record_block(hook, *thread, block, share);
    else if (thread->sampler.stops())
      read_clock(hook, *thread);
    thread->reallocating = false;
  }
  const std::uint64_t usable = block.usable_bytes != 0 ? block.usable_bytes : block.bytes;
  count(hook, thread, block.space, {block.bytes, 1, 0, usable, 0});
}

Released on_free(InHook hook, Space space, Api api, std::uint64_t address,
                 std::uint64_t usable_bytes, std::uint32_t device) noexcept {
  Released released;
  if (phase() == Phase::off || address == 0) return released;
  ThreadState* const thread = current_thread(hook);
  if (thread != nullptr) thread->reallocating = function_of(api).has(kResizes);
  released.address = address;
  released.usable_bytes = usable_bytes;
  // A block of its own mapping, which malloc may unmap, can have been a coroutine's stack.
  if (usable_bytes >= kLargeBytes) stack::on_unmapped(hook, address, usable_bytes);
  const bool may_be_inherited = usable_bytes > kLargeBytes && phase() == Phase::waiting;
  if (exact() || g_state.may_be_recorded(address) || may_be_inherited) [[unlikely]]
    remove_block(hook, thread, space, api, device, released);
  count(hook, thread, space, {0, 0, 1, 0, released.usable_bytes});
  return released;
}

void end_release(InHook hook) noexcept {
  if (phase() == Phase::off) return;
  if (ThreadState* const thread = current_thread(hook)) thread->reallocating = false;
}

void restore(InHook hook, Space space, const Released& released) noexcept {
  if (phase() == Phase::off || released.address == 0) return;
  ThreadState* const thread = current_thread(hook);
  if (thread != nullptr) thread->reallocating = false;
  if (released.node != 0) {
    std::atomic<std::uint64_t>* const word = g_state.small_blocks.find_word(released.address);
    live::SideTable::store(*word, g_state.small_blocks.pack(
                                      {released.address, static_cast<std::uint32_t>(released.bytes),
                                       released.node, released.birth_s}));
    const std::uint32_t holder =
        g_state.holders.find_or_add(hook, released.node, space, Api::none, 0);
    if (holder != 0) g_state.holders.restore(hook, holder, released.bytes, 1);
  } else if (released.weight != 0) {
    live::Block replaced;
    const live::Block block{released.address, released.bytes,   released.holder,
                            released.weight,  released.birth_s, released.gap_bytes};
    if (g_state.blocks.insert(hook, block, replaced)) {
      g_state.holders.restore(hook, block.holder, block.bytes * block.weight, block.weight);
    } else {
      drop();
    }
  }
  if (thread != nullptr) end_in_flight(*thread->lane);
  count(hook, thread, space, {0, 0, -std::uint64_t{1}, 0, -released.usable_bytes});
}

void count_allocate(Space space, std::uint64_t bytes, std::uint64_t usable_bytes) noexcept {
  const Delta delta{bytes, 1, 0, usable_bytes, 0};
  ThreadState* const thread = registered_thread();
  return thread != nullptr ? count_quietly(*thread, space, delta) : count_unlaned(space, delta);
}

void count_free(Space space, std::uint64_t usable_bytes) noexcept {
  const Delta delta{0, 0, 1, 0, usable_bytes};
  ThreadState* const thread = registered_thread();
  return thread != nullptr ? count_quietly(*thread, space, delta) : count_unlaned(space, delta);
}

}  // namespace oomrec::recorder

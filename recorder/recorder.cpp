// The way of one event.
//
//   allocate   decide (exact, large, or sampled) → stack → holder → live block → ring → counters
//   free       filter → live block → holder → ring → counters
//   map …      range table → counters; every one of them is recorded
//
// Events of the ring beyond what the names say: `mark` with api `none` is the lane's new owner,
// with api `fork` a child that was waited for (address: its pid, bytes: its wait status).
#include "recorder/recorder.h"

#include <sys/mman.h>

#include "recorder/counters.h"
#include "recorder/session/writer.h"
#include "recorder/stack/stack.h"
#include "recorder/state.h"
#include "recorder/threads.h"
#include "recorder/tick.h"

namespace oomrec::recorder {

using session::g_session;
using session::RangeKind;

namespace {

std::uint32_t birth_s(const ThreadState& thread) noexcept { return thread.time_ms / 1000; }

// --- Heap ---------------------------------------------------------------------------------------

// What a block counts for.
struct Share {
  std::uint32_t weight;  // how many blocks this one stands for; 0: it is not recorded
  std::uint8_t flags;    // of a holder that has it
};

Share share_of(ThreadState& thread, std::uint64_t bytes) noexcept {
  if (bytes >= g_state.large_bytes.load(std::memory_order_relaxed) || exact()) return {1, 0};
  if (!thread.sampler.take(bytes)) [[likely]]
    return {0, 0};
  return {thread.sampler.weight(bytes, g_state.interval_bytes.load(std::memory_order_relaxed)),
          session::kHolderEstimated};
}

void let_go(InHook hook, const live::Block& block) noexcept {
  g_state.holders.shrink(hook, block.holder, block.bytes * block.weight, block.weight);
}

[[gnu::noinline]] void record_block(InHook hook, ThreadState& thread, const Block& block,
                                    Share share) noexcept {
  const std::uint32_t weight = share.weight;
  maybe_read_clock(hook, thread);
  const std::uint32_t node = stack::capture(hook, thread.stacks, thread.root());
  const std::uint32_t holder =
      g_state.holders.find_or_add(hook, node, block.space, block.api, share.flags);
  live::Block replaced;
  if (holder != 0 &&
      g_state.blocks.insert(hook, {block.address, block.bytes, holder, weight, birth_s(thread)},
                            replaced)) {
    if (replaced.address != 0) let_go(hook, replaced);
    g_state.holders.grow(hook, holder, block.bytes * weight, weight);
  } else {
    drop();
    sample_coarser();
  }
  tally(thread, block.api, block.bytes, weight, true);
  append_event(thread, EventKind::allocate, block.space, block.api, block.address, block.bytes,
               node);
}

// A fork's child is worth a session once it has allocated its first MiB.
ThreadState* thread_for(InHook hook, std::uint64_t bytes) noexcept {
  ThreadState* const thread = current_thread(hook);
  if (thread != nullptr || phase() != Phase::waiting) return thread;
  if (g_state.waiting_bytes.fetch_add(bytes, std::memory_order_relaxed) + bytes < kWaitingBytes)
    return nullptr;
  return begin_waiting_session(hook) ? current_thread(hook) : nullptr;
}

// Nobody recorded this block. In a fork's child it may be the parent's.
void let_go_inherited(InHook hook, Space space, std::uint64_t usable_bytes) noexcept {
  if (g_state.inherited_holder == 0 || space != Space::heap) return;
  // Below the large ones an unknown block may as well be one of ours that was not sampled.
  if (exact() || usable_bytes >= g_state.large_bytes.load(std::memory_order_relaxed) + 64) {
    g_state.holders.shrink_at_most(hook, g_state.inherited_holder, usable_bytes, 1);
  }
}

// The block at released.address, if one is recorded there, is let go; tells what it was.
[[gnu::noinline]] void forget_block(InHook hook, ThreadState& thread, Space space, Api api,
                                    Released& released) noexcept {
  live::Block block;
  if (g_state.blocks.may_hold(released.address) &&
      g_state.blocks.remove(hook, released.address, block)) {
    let_go(hook, block);
    released.bytes = block.bytes;
    released.holder = block.holder;
    released.weight = block.weight;
    released.birth_s = block.birth_s;
    if (released.usable_bytes == 0) released.usable_bytes = block.bytes;
  }
  if (released.weight == 0) let_go_inherited(hook, space, released.usable_bytes);
  if (released.weight == 0 && !exact()) return;
  maybe_read_clock(hook, thread);
  tally(thread, api, released.bytes, released.weight != 0 ? released.weight : 1, false);
  append_event(thread, EventKind::free, space, api, released.address, released.bytes, 0);
}

// --- Mappings -----------------------------------------------------------------------------------

bool anonymous(const Mapping& mapping) noexcept {
  return !mapping.file &&
         (mapping.flags & (MAP_STACK | MAP_GROWSDOWN)) == 0;  // thread stacks never count
}

RangeKind kind_of(const Mapping& mapping) noexcept {
  if (!anonymous(mapping)) return RangeKind::other;
  if (mapping.protection == PROT_NONE || (mapping.flags & MAP_NORESERVE) != 0)
    return RangeKind::reservation;
  return (mapping.protection & PROT_WRITE) != 0 ? RangeKind::counted : RangeKind::other;
}

// A call that changes mappings: where it came from.
struct Caller {
  ThreadState* thread;
  std::uint32_t node = 0;
  std::uint32_t holder = 0;
};

Caller caller(InHook hook, std::uint64_t bytes, Api api, bool counts) noexcept {
  Caller from{thread_for(hook, counts ? bytes : 0)};
  if (from.thread == nullptr) return from;
  maybe_read_clock(hook, *from.thread);
  from.node = stack::capture(hook, from.thread->stacks, from.thread->root());
  if (counts) from.holder = g_state.holders.find_or_add(hook, from.node, Space::map, api, 0);
  return from;
}

std::uint32_t birth_s(const Caller& from) noexcept {
  return from.thread == nullptr ? 0 : birth_s(*from.thread);
}

void count_change(InHook hook, const Caller& from, Api api,
                  const live::RangeChange& change) noexcept {
  if (phase() == Phase::active) {
    auto& reserved = g_session.header().spaces[static_cast<std::size_t>(Space::map)].reserved_bytes;
    reserved.fetch_add(static_cast<std::uint64_t>(change.reserved_bytes),
                       std::memory_order_relaxed);
    if (change.dropped != 0) drop(change.dropped);
  }
  if (from.thread != nullptr && change.added_bytes != 0)
    tally(*from.thread, api, change.added_bytes, 1, true);
  count(hook, from.thread, Space::map,
        {change.added_bytes, change.added_count, static_cast<std::uint64_t>(change.removed_count),
         change.added_bytes, change.removed_bytes});
}

}  // namespace

// --- Heap ---------------------------------------------------------------------------------------

bool admits(InHook hook, Space, std::uint64_t bytes) noexcept {
  if (g_state.limit.bytes() == 0 || phase() == Phase::off) return true;
  return g_state.limit.admits(live_bytes(current_thread(hook)), bytes);
}

void on_allocate(InHook hook, const Block& block) noexcept {
  if (phase() == Phase::off) return;
  ThreadState* thread = current_thread(hook);
  if (thread == nullptr) [[unlikely]]
    thread = thread_for(hook, block.bytes);
  if (thread != nullptr) [[likely]] {
    const Share share = share_of(*thread, block.bytes);
    if (share.weight != 0) [[unlikely]]
      record_block(hook, *thread, block, share);
  }
  const std::uint64_t usable = block.usable_bytes != 0 ? block.usable_bytes : block.bytes;
  count(hook, thread, block.space, {block.bytes, 1, 0, usable, 0});
}

Released on_free(InHook hook, Space space, Api api, std::uint64_t address,
                 std::uint64_t usable_bytes) noexcept {
  Released released;
  if (phase() == Phase::off || address == 0) return released;
  ThreadState* const thread = current_thread(hook);
  released.address = address;
  released.usable_bytes = usable_bytes;
  const bool unknown = thread == nullptr || (!exact() && !g_state.blocks.may_hold(address) &&
                                             g_state.inherited_holder == 0);
  if (!unknown) [[unlikely]]
    forget_block(hook, *thread, space, api, released);
  count(hook, thread, space, {0, 0, 1, 0, released.usable_bytes});
  return released;
}

void restore(InHook hook, Space space, const Released& released) noexcept {
  if (phase() == Phase::off || released.address == 0) return;
  ThreadState* const thread = current_thread(hook);
  if (thread != nullptr && released.weight != 0) {
    live::Block replaced;
    const live::Block block{released.address, released.bytes, released.holder, released.weight,
                            released.birth_s};
    if (g_state.blocks.insert(hook, block, replaced)) {
      g_state.holders.restore(hook, block.holder, block.bytes * block.weight, block.weight);
    } else {
      drop();
    }
  }
  count(hook, thread, space, {0, 0, -std::uint64_t{1}, 0, -released.usable_bytes});
}

void count_allocate(Space space, std::uint64_t bytes, std::uint64_t usable_bytes) noexcept {
  const Delta delta{bytes, 1, 0, usable_bytes, 0};
  ThreadState* const thread = known_thread();
  return thread != nullptr ? count_quietly(*thread, space, delta) : count_unlaned(space, delta);
}

void count_free(Space space, std::uint64_t usable_bytes) noexcept {
  const Delta delta{0, 0, 1, 0, usable_bytes};
  ThreadState* const thread = known_thread();
  return thread != nullptr ? count_quietly(*thread, space, delta) : count_unlaned(space, delta);
}

// --- Mappings -----------------------------------------------------------------------------------

void on_map(InHook hook, const Mapping& mapping) noexcept {
  if (phase() == Phase::off) return;
  const RangeKind kind = kind_of(mapping);
  const Caller from = caller(hook, mapping.bytes, mapping.api, kind == RangeKind::counted);
  count_change(hook, from, mapping.api,
               g_state.ranges.map(hook, mapping.address, mapping.bytes, kind, anonymous(mapping),
                                  from.holder, birth_s(from), false));
  if (from.thread != nullptr) {
    append_event(*from.thread, EventKind::map, Space::map, mapping.api, mapping.address,
                 mapping.bytes, from.node);
  }
}

void on_unmap(InHook hook, Api api, std::uint64_t address, std::uint64_t bytes) noexcept {
  if (phase() == Phase::off) return;
  const Caller from{current_thread(hook)};
  count_change(hook, from, api, g_state.ranges.unmap(hook, address, bytes));
  if (from.thread == nullptr) return;
  maybe_read_clock(hook, *from.thread);
  append_event(*from.thread, EventKind::unmap, Space::map, api, address, bytes, 0);
}

void on_remap(InHook hook, std::uint64_t old_address, std::uint64_t old_bytes,
              std::uint64_t new_address, std::uint64_t new_bytes, bool old_stays) noexcept {
  if (phase() == Phase::off) return;
  const bool counts = !old_stays || g_state.ranges.counted_bytes(hook, old_address, 1) != 0;
  const Caller from = caller(hook, new_bytes, Api::mremap, counts);
  const RangeKind kind = counts ? RangeKind::counted : RangeKind::other;
  count_change(hook, from, Api::mremap,
               old_stays ? g_state.ranges.map(hook, new_address, new_bytes, kind, true, from.holder,
                                              birth_s(from), false)
                         : g_state.ranges.remap(hook, old_address, old_bytes, new_address,
                                                new_bytes, from.holder, birth_s(from)));
  if (from.thread == nullptr) return;
  if (!old_stays)
    append_event(*from.thread, EventKind::unmap, Space::map, Api::mremap, old_address, old_bytes,
                 0);
  append_event(*from.thread, EventKind::remap, Space::map, Api::mremap, new_address, new_bytes,
               from.node);
}

void on_protect(InHook hook, std::uint64_t address, std::uint64_t bytes, int protection) noexcept {
  if (phase() == Phase::off || ((protection & PROT_WRITE) == 0 && protection != PROT_NONE)) return;
  const std::uint64_t newly = counted_by_protect(hook, address, bytes, protection);
  const bool given_up =
      protection == PROT_NONE && g_state.ranges.counted_bytes(hook, address, bytes) != 0;
  if (newly == 0 && !given_up) return;
  const Caller from = caller(hook, newly, Api::mprotect, newly != 0);
  count_change(
      hook, from, Api::mprotect,
      g_state.ranges.protect(hook, address, bytes, protection, from.holder, birth_s(from)));
  if (from.thread == nullptr) return;
  const EventKind kind = newly != 0 ? EventKind::map : EventKind::unmap;
  append_event(*from.thread, kind, Space::map, Api::mprotect, address, newly != 0 ? newly : bytes,
               from.node);
}

void on_break(InHook hook, Api api, std::uint64_t old_break, std::uint64_t new_break) noexcept {
  if (phase() == Phase::off || old_break == new_break || old_break == 0 || new_break == 0) return;
  // The kernel maps whole pages: what lies below the page of the old break is there already.
  const std::uint64_t low = live::page_up(old_break < new_break ? old_break : new_break);
  const std::uint64_t high = live::page_up(old_break < new_break ? new_break : old_break);
  if (new_break < old_break) return on_unmap(hook, api, low, high - low);
  const Caller from = caller(hook, high - low, api, true);
  count_change(hook, from, api,
               g_state.ranges.map(hook, low, high - low, RangeKind::counted, true, from.holder,
                                  birth_s(from), true));
  if (from.thread != nullptr) {
    append_event(*from.thread, EventKind::map, Space::map, api, low, high - low, from.node);
  }
}

std::uint64_t counted_bytes(InHook hook, const Mapping& mapping) noexcept {
  if (phase() == Phase::off || kind_of(mapping) != RangeKind::counted) return 0;
  const std::uint64_t bytes = live::page_up(mapping.bytes);
  if ((mapping.flags & MAP_FIXED) == 0) return bytes;
  const std::uint64_t there = g_state.ranges.counted_bytes(hook, mapping.address, bytes);
  return bytes > there ? bytes - there : 0;
}

std::uint64_t counted_by_protect(InHook hook, std::uint64_t address, std::uint64_t bytes,
                                 int protection) noexcept {
  if (phase() == Phase::off || (protection & PROT_WRITE) == 0) return 0;
  return g_state.ranges.promotable_bytes(hook, address, bytes);
}

std::uint64_t counted_by_remap(InHook hook, std::uint64_t old_address,
                               std::uint64_t growth) noexcept {
  if (phase() == Phase::off || growth == 0) return 0;
  return g_state.ranges.counted_bytes(hook, old_address, 1) != 0 ? live::page_up(growth) : 0;
}

// --- The rest -----------------------------------------------------------------------------------

void on_child_status(InHook hook, int pid, int wait_status) noexcept {
  if (phase() != Phase::active) return;
  ThreadState* const thread = current_thread(hook);
  if (thread == nullptr) return;
  maybe_read_clock(hook, *thread);
  append_event(*thread, EventKind::mark, Space::heap, Api::fork, static_cast<std::uint64_t>(pid),
               static_cast<std::uint32_t>(wait_status), 0);
}

void set_limit(InHook, std::uint64_t bytes) noexcept {
  g_state.limit.set(bytes);
  if (phase() == Phase::active)
    g_session.header().soft_limit_bytes.store(bytes, std::memory_order_relaxed);
}

void push_context(InHook hook, std::string_view text) noexcept {
  ThreadState* const thread = phase() == Phase::off ? nullptr : current_thread(hook);
  if (thread == nullptr) return;
  const std::uint32_t parent = thread->root();
  if (++thread->context_depth > kMaxContexts) return;
  thread->roots[thread->context_depth] =
      root_node(hook, parent, session::SpecialFrame::context, text);
}

void pop_context(InHook hook) noexcept {
  ThreadState* const thread = phase() == Phase::off ? nullptr : current_thread(hook);
  if (thread != nullptr && thread->context_depth > 0) --thread->context_depth;
}

void on_module_unload(InHook hook) noexcept {
  if (phase() != Phase::active) return;
  g_session.header().module_generation.fetch_add(1, std::memory_order_relaxed);
  stack::forget_modules(hook);
}

void note_heap(InHook hook, std::string_view note) noexcept {
  if (phase() == Phase::active) g_session.header().heap_note = g_session.add_string(hook, note);
}

}  // namespace oomrec::recorder

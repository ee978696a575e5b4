#include "recorder/events/exact_quick.h"
#include "common/machine/frames.h"

#include "recorder/events/heap.h"
#include "recorder/session/writer.h"
#include "recorder/stack/quick_node.h"
#include "recorder/stack/self_check.h"
#include "recorder/state/clock.h"
#include "recorder/state/counters.h"
#include "recorder/state/state.h"

namespace oomrec::recorder {
namespace {

enum class Recorded : std::uint8_t {
  no,  // nothing was done
  yes,
  to_publish,  // yes, and the thread's share of the totals is now large
};

// The word of a block in the side table; nullptr: unknown, or it does not belong there.
[[gnu::always_inline]] inline std::atomic<std::uint64_t>* word_of(
    std::uint64_t address, std::uint64_t usable_bytes) noexcept {
  constexpr std::uint64_t kLeast = (1u << kQuickShift) / 2 + 1;  // SideTable::takes()
  if (usable_bytes - kLeast >= session::kSmallBlockBytes - kLeast) [[unlikely]]
    return nullptr;
  std::atomic<std::uint64_t>* const words = g_state.small_blocks.latest_words(address);
  if (words == nullptr) [[unlikely]]
    return nullptr;
  return words + (address % session::kSideSpanBytes >> kQuickShift);
}

// `frame`: HookScope::frame().
[[gnu::always_inline]] inline Recorded record(InHook hook, ThreadState& thread, Api api,
                                              std::uint64_t address, std::uint64_t bytes,
                                              std::uint64_t usable_bytes,
                                              const machine::CalleeFrame& frame,
                                              stack::Python python) noexcept {
  std::atomic<std::uint64_t>* const word = word_of(address, usable_bytes);
  if (word == nullptr) [[unlikely]]
    return Recorded::no;
  __builtin_prefetch(word, 1);
  const std::uint32_t root = thread.root(hook);
  const std::uint32_t node = stack::quick_node(hook, thread.stacks, root, frame, python);
  if (node == 0 || node == thread.failed.node) [[unlikely]]
    return Recorded::no;
  if constexpr (stack::kSelfCheck) stack::check_quick_node(hook, thread.stacks, root, node);
  session::HolderSum& sum = thread.sums.place_of(node);
  if (!thread.sums.is_present(sum, node) || live::HolderSums::is_large(sum) ||
      word->load(std::memory_order_relaxed) != 0) [[unlikely]]
    return Recorded::no;

  session::Lane& lane = *thread.lane;
  thread.sums.grow_present(sum, usable_bytes);
  thread.last_block = address;
  live::SideTable::store(
      *word, session::packed(address, usable_bytes, node, thread.birth_bits, kQuickShift));
  add_to_tally(lane.apis[static_cast<std::size_t>(api)], bytes, 1);
  add_to_tally(lane.sizes[std::bit_width(bytes | 1)], bytes, 1);  // there are some: is_small()
  thread.ring.append_plain(lane, EventKind::allocate, api, address, bytes, node);
  count_quietly(thread, Space::heap, {bytes, 1, 0, usable_bytes, 0});
  leave(&thread);
  return is_share_large(thread, Space::heap) ? Recorded::to_publish : Recorded::yes;
}

// As record_exactly().
[[gnu::noinline, gnu::cold]] void* record_slowly(Api api, void* block, std::uint64_t bytes,
                                                 std::uint64_t usable_bytes) noexcept {
  const HookScope scope;
  on_allocate(scope.in_hook(),
              {Space::heap, api, reinterpret_cast<std::uint64_t>(block), bytes, usable_bytes});
  return block;
}
[[gnu::noinline, gnu::cold]] void* publish_after(void* block) noexcept {
  const HookScope scope;
  publish(scope.in_hook(), *t_thread, Space::heap);
  return block;
}

[[gnu::always_inline]] inline void* record_or_jump(Api api, void* block, std::uint64_t bytes,
                                                   std::uint64_t usable_bytes,
                                                   stack::Python python) noexcept {
  Recorded recorded = Recorded::no;
  {
    const ExactScope scope;
    // Again, because a signal handler may have forked since; in the scope, none does unseen.
    if (ThreadState* const thread = t_thread; thread != nullptr && thread->exact_quick) [[likely]]
      recorded = record(scope.in_hook(), *thread, api, reinterpret_cast<std::uint64_t>(block),
                        bytes, usable_bytes, machine::CalleeFrame::here(), python);
  }
  if (recorded == Recorded::yes) [[likely]]
    return block;
  return recorded == Recorded::no ? record_slowly(api, block, bytes, usable_bytes)
                                  : publish_after(block);
}

[[gnu::noinline]] void* record_in_python(Api api, void* block, std::uint64_t bytes,
                                         std::uint64_t usable_bytes) noexcept {
  return record_or_jump(api, block, bytes, usable_bytes, stack::Python::present);
}

}  // namespace

void pause(ThreadState& thread) noexcept {
  const HookScope scope;
  const InHook hook = scope.in_hook();
  if (!thread.exact_quick) return;  // a signal handler has just forked
  read_clock(hook, thread);
  if (session::g_session.arena.is_short()) [[unlikely]]
    fall_back_to_sampling();
  thread.ring.begin_plain(thread.time_ms, thread.thread);
}

void* record_exactly(Api api, void* block, std::uint64_t bytes,
                     std::uint64_t usable_bytes) noexcept {
  if (stack::has_python()) return record_in_python(api, block, bytes, usable_bytes);
  return record_or_jump(api, block, bytes, usable_bytes, stack::Python::absent);
}

bool release_quickly(InHook, ThreadState& thread, Api api, std::uint64_t address,
                     std::uint64_t usable_bytes) noexcept {
  if (!thread.exact_quick) [[unlikely]]
    return false;  // a signal handler has just forked
  std::atomic<std::uint64_t>* const word = word_of(address, usable_bytes);
  if (word == nullptr || is_share_large(thread, Space::heap)) [[unlikely]]
    return false;
  const std::uint64_t value = word->load(std::memory_order_relaxed);
  const auto node = static_cast<std::uint32_t>(value) & (session::kSmallBlockNodes - 1);
  if (node == 0 || !session::begins_at(value, address, kQuickShift)) [[unlikely]]
    return false;
  session::HolderSum& sum = thread.sums.place_of(node);
  if (!thread.sums.is_present(sum, node)) [[unlikely]]
    return false;

  session::Lane& lane = *thread.lane;
  const std::uint64_t bytes = value >> 26 & (session::kSmallBlockBytes - 1);
  word->store(0, std::memory_order_relaxed);
  const bool temporary = thread.last_block == address;
  if (temporary) thread.last_block = 0;
  thread.sums.shrink_present(sum, bytes, temporary);
  add_to_tally(lane.apis[static_cast<std::size_t>(api)], bytes, 1);
  thread.ring.append_plain(lane, EventKind::free, api, address, bytes, 0);
  count_quietly(thread, Space::heap, {0, 0, 1, 0, usable_bytes});
  leave(&thread);
  return true;
}

}  // namespace oomrec::recorder

#include "recorder/events/objects.h"

#include <algorithm>

#include "recorder/events/heap.h"
#include "recorder/process/inherited.h"
#include "recorder/process/object_heap.h"
#include "recorder/python/interpreter.h"
#include "recorder/session/writer.h"
#include "recorder/stack/stack.h"
#include "recorder/state/clock.h"
#include "recorder/state/counters.h"
#include "recorder/state/node_scope.h"

namespace oomrec::recorder {

using session::g_session;

namespace {

// An interval of 512 KiB becomes one of 2 KiB.
constexpr std::uint8_t kFinestShift = kFirstObjectShift;
// A sample costs 0.3 to 1 µs: a percent or two of a thread's time. A process may make its first
// ones as fast as it allocates: imports are short, and what they leave is spread over many lines.
constexpr std::uint32_t kWindowMs = 20;
constexpr std::uint32_t kMostInWindow = 10 * kWindowMs;
constexpr std::uint64_t kUnlimited = 8 * 1024;
// Live samples are 32 bytes each in the session, and half of that in its index: ever coarser, so
// that a GiB of objects is some 100,000 samples.
constexpr std::uint32_t kFineSamples = 32 * 1024, kSamplesOfAShift = 16 * 1024;

// Every 32nd of the recording that is used, from a quarter on, makes samples coarser: the stacks of
// imports must not fill it before the program does what it is for.
std::uint32_t shifts_for_space() noexcept {
  const std::uint64_t budget = g_state.budget_bytes;
  const std::uint64_t used = g_session.arena.populated_bytes();
  return used * 4 < budget ? 0 : static_cast<std::uint32_t>(used * 32 / budget) - 7;
}

std::uint8_t finest_shift() noexcept {
  const std::uint32_t live = g_state.objects.count();
  std::uint32_t coarser = shifts_for_space();
  if (live >= kFineSamples) coarser += 1 + (live - kFineSamples) / kSamplesOfAShift;
  std::uint32_t shift = kFinestShift - std::min<std::uint32_t>(coarser, kFinestShift);
  const std::uint64_t interval = g_state.interval_bytes.load(std::memory_order_relaxed);
  const std::uint64_t least = g_state.least_sample_bytes.load(std::memory_order_relaxed);
  while (shift != 0 && interval >> shift < least) --shift;
  return static_cast<std::uint8_t>(shift);
}

// An interpreter that starts makes the same some MiB of objects each time, half of all samples of a
// short program, and before any line of it. tracemalloc begins later, too.
constexpr std::uint8_t kShiftAtStart = kFinestShift - 4;
constinit std::atomic<bool> g_has_started{false};

bool is_initialized() noexcept {
  const auto ask = stack::g_interpreter.is_initialized;
  return ask == nullptr || ask() != 0;
}

// A thread starts finely, and samples less while it makes many samples.
void adapt(ThreadState& thread) noexcept {
  const std::uint8_t finest = finest_shift();
  if (!g_has_started.load(std::memory_order_relaxed)) {
    const bool has_started = is_initialized();
    g_has_started.store(has_started, std::memory_order_relaxed);
    thread.object_shift = has_started ? finest : std::min(finest, kShiftAtStart);
    return;
  }
  thread.object_shift = std::min(thread.object_shift, finest);
  if (g_state.objects.ever() < kUnlimited) return;
  ++thread.objects_in_window;
  const bool many = thread.objects_in_window > kMostInWindow;
  if (!many && thread.time_ms - thread.object_window_ms < kWindowMs) return;
  if (many && thread.object_shift > 0)
    --thread.object_shift;
  else if (thread.objects_in_window < kMostInWindow / 4 && thread.object_shift < finest)
    ++thread.object_shift;
  thread.objects_in_window = 0;
  thread.object_window_ms = thread.time_ms;
}

// What an object takes up in the pool, whose blocks are multiples of 16 bytes: also in Python's
// mimalloc, up to 64 bytes. (Before Python 3.7.4 they were multiples of 8.)
std::uint64_t in_pool(std::uint64_t bytes) noexcept {
  constexpr std::uint64_t kStep = 16;
  return std::max((bytes + kStep - 1) / kStep * kStep, kStep);
}

// The pool's holder, if a holder's objects are in the pool; else 0.
std::uint32_t pool_of(InHook hook, std::uint32_t holder) noexcept {
  const auto space = static_cast<Space>(g_session.holders.at(holder).space);
  return space == Space::python ? object_pool_holder(hook) : 0;
}

// An object's share of the pool is its holder's now.
void take_from_pool(InHook hook, std::uint32_t holder, std::uint64_t bytes) noexcept {
  if (const std::uint32_t pool = pool_of(hook, holder); pool != 0)
    g_state.holders.shrink(hook, pool, bytes, 0);
}

void shrink_holder(InHook hook, const live::Block& block) noexcept {
  const std::uint64_t bytes = block.bytes * block.weight;
  const std::uint32_t pool = pool_of(hook, block.holder);
  g_state.holders.shrink(hook, block.holder, bytes, block.weight);
  if (pool != 0) g_state.holders.restore(hook, pool, bytes, 0);
}

bool insert(InHook hook, const live::Block& block) noexcept {
  live::Block replaced;
  if (!g_state.objects.add(hook, block.address)) return false;
  if (!g_state.blocks.insert(hook, block, replaced, live::InFilter::no)) {
    g_state.objects.remove(hook, block.address);
    return false;
  }
  if (replaced.address != 0) shrink_holder(hook, replaced);  // its free was not seen
  return true;
}

}  // namespace

std::uint32_t object_weight(InHook hook, Source source, std::uint64_t bytes) noexcept {
  ThreadState* const thread = current_thread(hook);
  if (thread == nullptr) return 0;
  if (!thread->sampler.take(scaled(*thread, source, bytes))) {
    if (thread->sampler.stops()) read_clock(hook, *thread);
    return 0;
  }
  return thread->sampler.weight(scaled(*thread, source, bytes),
                                g_state.interval_bytes.load(std::memory_order_relaxed));
}

void on_object(InHook hook, Source source, Api api, std::uint64_t address, std::uint64_t bytes,
               std::uint32_t weight) noexcept {
  ThreadState* const thread = current_thread(hook);
  if (thread == nullptr) return;
  maybe_read_clock(hook, *thread);
  adapt(*thread);
  const NodeScope nodes{hook, thread};
  const std::uint32_t node = stack::capture(hook, thread->stacks, thread->root(hook));
  const Space space = source == Source::pool ? Space::python : Space::heap;
  const std::uint64_t taken = source == Source::pool ? in_pool(bytes) : bytes;
  const std::uint32_t holder =
      g_state.holders.find_or_add(hook, node, space, api, session::kHolderEstimated);
  if (holder == 0 || !insert(hook, {address, taken, holder, weight, thread->birth_s()}))
    return drop();
  g_state.holders.grow(hook, holder, taken * weight, weight);
  if (source == Source::pool && taken >= kLargeObject) grow_object_heap(hook, taken);
  take_from_pool(hook, holder, taken * weight);
  count_object_growth(hook, static_cast<std::int64_t>(taken * weight));
  tally_api(*thread, api, bytes, weight);
  append_event(*thread, EventKind::allocate, api, address, bytes, node);
}

FreedObject on_object_freed(InHook hook, Api api, std::uint64_t address) noexcept {
  live::Block block;
  g_state.objects.remove(hook, address);
  if (phase() != Phase::active ||
      !g_state.blocks.remove(hook, address, block, live::InFilter::no)) {
    release_inherited_object(hook, address);
    return {};
  }
  if (block.bytes >= kLargeObject && pool_of(hook, block.holder) != 0)
    shrink_object_heap(hook, block.bytes);
  if (ThreadState* const thread = current_thread(hook); thread != nullptr) {
    const std::uint32_t node = g_session.holders.at(block.holder).node;
    thread->released_node.store(node, std::memory_order_release);  // restore_object()
    session::g_node_states.touch(node);
  }
  shrink_holder(hook, block);
  count_object_growth(hook, -static_cast<std::int64_t>(block.bytes * block.weight));
  if (ThreadState* const thread = current_thread(hook); thread != nullptr) {
    maybe_read_clock(hook, *thread);
    tally_api(*thread, api, block.bytes, block.weight);
    append_event(*thread, EventKind::free, api, address, block.bytes, 0);
  }
  return block;
}

void restore_object(InHook hook, const FreedObject& freed) noexcept {
  if (freed.address == 0) return;
  if (!insert(hook, freed)) return drop();
  g_state.holders.restore(hook, freed.holder, freed.bytes * freed.weight, freed.weight);
  if (freed.bytes >= kLargeObject && pool_of(hook, freed.holder) != 0)
    grow_object_heap(hook, freed.bytes);
  take_from_pool(hook, freed.holder, freed.bytes * freed.weight);
}

void wait_for_session(InHook hook, std::uint64_t bytes) noexcept {
  if (phase() == Phase::waiting) thread_for(hook, bytes);
}

bool admits_object(InHook hook, Request& request) noexcept {
  return admits(hook, request, object_heap_growth(request.bytes));
}

void announce_arena(std::uint64_t bytes) noexcept {
  const QuickScope scope;
  if (ThreadState* const thread = current_thread(scope.in_hook()); thread != nullptr)
    thread->announced_arena_bytes = bytes;
}

std::uint32_t object_pool_holder(InHook hook) noexcept {
  std::uint32_t holder = g_state.object_pool_holder.load(std::memory_order_relaxed);
  if (holder != 0) return holder;
  const std::uint64_t frame = session::special_frame(session::SpecialFrame::object_pool, 0);
  const std::uint32_t node = stack::intern(hook, group_node(hook, "main"), frame);
  holder = g_state.holders.find_or_add(hook, node, Space::map, Api::mmap, 0);
  g_state.object_pool_holder.store(holder, std::memory_order_relaxed);
  return holder;
}

}  // namespace oomrec::recorder

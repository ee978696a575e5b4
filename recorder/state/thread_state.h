// The state of a thread: its lane, its caches for stacks, its distance to the next sample.
//
// One for each lane, in private mapped memory. A thread gets one at its first event, and finds it
// by a thread-local pointer. When it exits, the next thread takes its lane over, counters and all.
// A pointer from before a fork has another generation, or leads to a state that the kernel has
// wiped.
//
// A thread's group: "main" for the process' first thread, else its name without digits, as it was
// at the thread's first event (ThreadPoolExecutor-0_3 → ThreadPoolExecutor-_).
#pragma once

#include <cstdint>

#include "common/session/layout.h"
#include "common/session/small_block.h"
#include "common/system/hook_scope.h"
#include "recorder/live/holder_sums.h"
#include "recorder/stack/stack.h"
#include "recorder/state/failed_request.h"
#include "recorder/state/labels.h"
#include "recorder/state/sampler.h"
#include "recorder/state/state.h"

namespace oomrec::recorder {

inline std::uint64_t served_on(const session::Lane& lane) noexcept {
  std::uint64_t count = 0;
  for (const auto& space : lane.spaces)
    count += space.allocated_count.load(std::memory_order_relaxed);
  return count;
}

struct ThreadState {
  session::Lane* lane;
  session::RingWriter ring;
  bool quick;        // its events may take the fast path (quick.h)
  bool exact_quick;  // … that of exact mode (exact_quick.h)
  Sampler sampler;
  std::atomic<std::int64_t> unpublished[session::kLaneSpaces];  // atomic: signal handlers add too
  std::uint32_t thread;                                         // entry in `threads`
  std::uint32_t time_ms;
  std::uint64_t birth_bits;  // birth_s() in a word of the side table
  std::uint32_t events_to_clock;
  std::uint32_t context_depth;
  // Between the free and the allocation of a realloc: a tick now would see neither block. In a
  // program that keeps growing one buffer that would be every tick.
  bool reallocating;
  std::uint8_t object_shift;            // how much more finely objects of Python are sampled
  std::uint64_t announced_arena_bytes;  // recorder/events/objects.h; 0: none
  std::uint32_t objects_in_window, object_window_ms;
  // Outermost nodes of this thread's stacks: [0] is its group, the others its labels below it.
  std::uint32_t roots[1 + kMaxContexts];
  std::uint32_t common_root;      // the group below the common label, made when that was:
  std::uint64_t common_label;     // g_common_label
  std::uint32_t sums_flushed_ms;  // when its sums were last added to the holders
  live::HolderSums sums;
  // Addresses of its latest blocks, recorded exactly. PyTorch's lie inside other blocks.
  std::uint64_t last_block, last_torch_block;
  FailedRequest failed;      // its latest failure that was no probe and no after-shock of this one
  FailedRequest aftershock;  // the latest that follows from `failed`; time_ns 0: none
  FailedCall failed_call, aftershock_call;
  // Of the block that a realloc under way has released; 0: none. If that fails, it is live again.
  std::atomic<std::uint32_t> released_node;
  std::uint64_t mapped_bytes;  // all that it has mapped, reservations included
  std::uint64_t processor_ns;  // its own at its last sample of growth
  stack::ThreadStacks stacks;

  std::uint64_t& last_block_of(Space space) noexcept {
    return space == Space::torch ? last_torch_block : last_block;
  }
  std::uint32_t birth_s() const noexcept { return time_ms / 1000; }  // of a block, now
  void set_time(std::uint32_t ms) noexcept {
    time_ms = ms;
    birth_bits = session::birth_bits(birth_s());
  }
  // Requests of the thread that were served so far. Exact in both modes.
  std::uint64_t served() const noexcept { return served_on(*lane); }
  // A request of the stack `node` was served.
  void mark_served(std::uint32_t node) noexcept {
    if (node == failed.node) [[unlikely]]
      failed.served = true;
  }
  // The node of its innermost label, or of its group.
  std::uint32_t labelled_root() const noexcept {
    return roots[context_depth < kMaxContexts ? context_depth : kMaxContexts];
  }
  // The outermost node of its stacks.
  std::uint32_t root(InHook hook) noexcept {
    if (context_depth != 0) return labelled_root();
    if (g_common_label.load(std::memory_order_relaxed) != common_label) [[unlikely]]
      adopt_common_label(hook, *this);
    return common_root;
  }
};

// Of a thread that is new: Python's objects are sampled finely at first.
inline constexpr std::uint8_t kFirstObjectShift = 8;

// initial-exec: the first access must not allocate, nor one during the thread's TLS destructors.
[[gnu::tls_model("initial-exec")]] inline constinit thread_local ThreadState* t_thread = nullptr;
[[gnu::tls_model("initial-exec")]] inline constinit thread_local std::uint32_t t_generation = 0;

// The slow path: the first event of a thread, or its first after a fork.
ThreadState* register_thread(InHook) noexcept;

// nullptr: no lane is free, or a fork's child waits for its session. Then only count.
inline ThreadState* current_thread(InHook hook) noexcept {
  const std::uint32_t generation = g_state.generation->load(std::memory_order_relaxed);
  if (t_generation == generation) [[likely]]
    return t_thread;
  if (generation != 0 && phase() == Phase::waiting) return nullptr;  // spares each event the call
  return register_thread(hook);
}

// The same. Begins the session of a fork's child that has now allocated enough to be worth one.
ThreadState* thread_for(InHook, std::uint64_t bytes) noexcept;

// For a signal handler inside the recorder: never registers the thread, makes no system call.
inline ThreadState* registered_thread() noexcept {
  return t_generation == g_state.generation->load(std::memory_order_relaxed) ? t_thread : nullptr;
}

// Whether threads may take the fast path of the mode: not with rules of --fail for the heap, not
// near a limit.
bool may_be_quick() noexcept;
void choose_path(ThreadState&) noexcept;  // decides again

// The fast path of exact mode is for glibc's blocks, whose distance (side_table.h) is a constant.
inline constexpr std::uint32_t kQuickShift = 5;

// Writes one event to the thread's ring.
inline void append_event(ThreadState& thread, EventKind kind, Api api, std::uint64_t address,
                         std::uint64_t bytes, std::uint32_t node) noexcept {
  thread.ring.append(thread.time_ms, thread.thread, kind, api, address, bytes, node);
}

// The same of an event on a device.
void append_device_event(ThreadState&, EventKind, Api, Space, std::uint32_t device,
                         std::uint64_t key, std::uint64_t bytes, std::uint32_t node) noexcept;

// The node of a group of threads, interned once; 0: the table is full.
std::uint32_t group_node(InHook, std::string_view name) noexcept;

// Requests of all threads that were served so far, those of threads that have ended included.
std::uint64_t served_to_all() noexcept;

void reset_threads_after_fork(InHook) noexcept;

// The state of a lane; nullptr: no thread has had one yet.
ThreadState* thread_of_lane(std::uint32_t lane) noexcept;

// A signal handler that interrupted a hook forks: the child returns into that hook, which works on
// the thread's state. So the kernel must not wipe it this time. `wiped` false: before the fork;
// true: after it, in the parent.
void set_state_wiped(InHook, bool wiped) noexcept;
// In such a child, which is not recorded: no reader sees what the interrupted hook still writes
// there.
void abandon_state(InHook) noexcept;

}  // namespace oomrec::recorder

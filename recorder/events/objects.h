// Memory that Python's allocator hands out: objects of up to 512 bytes, which it cuts out of a pool
// of its own (pymalloc's arenas), and larger ones, which it passes on to malloc.
//
// Both are sampled here, and more finely than other blocks, because they are small and many: by the
// same sampler, to which each of their bytes counts 2^shift times. The shift adapts to how many
// samples a thread makes, and to how many live ones are on record. Large blocks are left to the
// heap's own hooks, and so are all that come from malloc in exact mode.
//
// The pool is mapped memory, which is counted when it is mapped. So that nothing counts twice, the
// pool is one holder, and an object's share moves from it to the holder of the object's stack
// (space `python`). What remains is the pool's free space.
#pragma once

#include <algorithm>
#include <cstdint>

#include "common/session/functions.h"
#include "common/system/hook_scope.h"
#include "recorder/state/request.h"
#include "recorder/state/state.h"
#include "recorder/state/thread_state.h"

namespace oomrec::recorder {

// Where an object comes from.
enum class Source : std::uint8_t { pool, malloc };

// The size of a block for the sampler, which adds what a block of malloc's costs besides: an object
// in a pool costs nothing besides, but an empty one is sampled, too. So the result may wrap below
// zero. Objects from malloc count twice: they are fewer, and hold as much. No object is as large as
// the bound, but a program may ask for one, and the product must not overflow.
inline constexpr std::uint64_t kMostObjectBytes = std::uint64_t{1} << 48;
inline std::uint64_t scaled(const ThreadState& thread, Source source,
                            std::uint64_t bytes) noexcept {
  const unsigned shift = thread.object_shift + (source == Source::malloc ? 1 : 0);
  return ((std::min(bytes, kMostObjectBytes) + 1) << shift) - Sampler::kBesides;
}

// True: the new object is not recorded here. False: call on_object() once it is there.
inline bool passes_unrecorded(Source source, std::uint64_t bytes) noexcept {
  ThreadState* const thread = t_thread;
  if (thread == nullptr) return phase() != Phase::active;
  return thread->sampler.passes(scaled(*thread, source, bytes));
}

// The same for one that comes from malloc. Call skip_in_heap() before malloc is called.
inline bool is_left_to_heap(std::uint64_t bytes) noexcept {
  return t_thread == nullptr || exact() ||
         bytes >= g_state.large_bytes.load(std::memory_order_relaxed);
}
inline void skip_in_heap(std::uint64_t bytes) noexcept {
  if (t_thread != nullptr) t_thread->sampler.skip(bytes);
}

// Whether an object at this address is on record. may_be_recorded_object() is quicker, but may be
// true of others.
inline bool is_recorded_object(const void* object) noexcept {
  return g_state.objects.holds(reinterpret_cast<std::uint64_t>(object));
}
inline bool may_be_recorded_object(const void* object) noexcept {
  return g_state.objects.may_hold(reinterpret_cast<std::uint64_t>(object));
}

// How many objects this one represents: passes_unrecorded() returned false for it, or it is being
// moved or resized. 0: it is not recorded. Uses up the sample point, so call it before the object
// is allocated: if the pool passes the request on to malloc, the hook of malloc samples afresh.
std::uint32_t object_weight(InHook, Source, std::uint64_t bytes) noexcept;

// Records a new object. `weight`: object_weight()'s, not 0.
void on_object(InHook, Source, Api, std::uint64_t address, std::uint64_t bytes,
               std::uint32_t weight) noexcept;

// A recorded object is about to be freed, moved or resized. The result restores it if that fails;
// address 0: it was not on record.
using FreedObject = live::Block;
FreedObject on_object_freed(InHook, Api, std::uint64_t address) noexcept;
void restore_object(InHook, const FreedObject&) noexcept;

// Whether a free-threaded interpreter may make this object: its heap's mappings do not count
// against the limit, its resident part does.
bool admits_object(InHook, Request&) noexcept;

// In a fork's child: its session begins once it has asked for enough. For such an interpreter,
// whose objects are all that it may ever ask for.
void wait_for_session(InHook, std::uint64_t bytes) noexcept;

// Called when such an interpreter has reserved memory for its heap. Null: nobody asked.
using OnObjectHeap = void(InHook) noexcept;
inline constinit OnObjectHeap* g_on_object_heap = nullptr;

// The thread's next mapping, if it has this size, is an arena of the pool. Not inside a hook. (A
// scope around the mapping would be a frame of ours in the middle of its stack.)
void announce_arena(std::uint64_t bytes) noexcept;

// The pool's holder; 0: the table is full.
std::uint32_t object_pool_holder(InHook) noexcept;

}  // namespace oomrec::recorder

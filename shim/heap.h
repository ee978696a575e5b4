// The one way of a heap event from a hook to the recorder.
//
// A block is counted at both of its ends or at neither: what a nested call makes is part of the
// outer call, what a signal handler makes while the recorder works goes to the totals only. The
// program gets what the real function returned, errno included.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "common/session/vocabulary.h"
#include "common/system/hook_scope.h"
#include "recorder/events/heap.h"
#include "recorder/events/quick.h"
#include "recorder/state/request.h"
#include "recorder/state/thread_state.h"
#include "shim/interpose/next.h"

namespace oomrec::shim {

// Whether calls of a function are recorded. Nothing is before the constructor has run, and none of
// a function that does not belong to the allocator whose malloc comes next: its blocks are counted
// where they pass that allocator.
enum class Watch : std::uint8_t {
  off,
  on,
  on_and_new_may_be_pending,  // the allocator has an operator new of its own (operator_new.cpp)
};
extern constinit Watch g_watched[kHostApiCount];

inline Watch watched(Api api) noexcept { return g_watched[static_cast<std::size_t>(api)]; }

// Set by an allocation that passed an unwatched hook: how the constructor finds out whether malloc
// is bound to us at all, and whether an operator new stands on it.
extern constinit bool g_entered_unwatched;

// Finds the allocator behind us and starts watching. Once, from the constructor.
void start_heap() noexcept;

// `allocator`: the library of the next malloc. True when it has an operator new of its own.
bool start_operator_new(const void* allocator) noexcept;

// The library that a function belongs to; for the constructor.
const void* library_of(const void* function) noexcept;

// A refused `operator new` shows itself by what comes next: the new-handler's or the exception's
// own allocation. Each hook of the heap calls this first while one may be pending.
void report_pending_new() noexcept;

// A refused request of the heap, unless the `operator new` around it has reported it already.
void report_failure(InHook, const recorder::Request&, recorder::FailedBy) noexcept;

// The same outside of a scope.
[[gnu::cold]] void report_unforeseen_failure(Api, std::uint64_t bytes) noexcept;

// Whether a mapping of so many bytes is made by an allocator's own `operator new` that is at work
// on this thread: then it is part of that call.
bool is_part_of_new(std::uint64_t bytes) noexcept;

// The size of glibc's chunks can be read beside the block: the line that free touches anyway.
extern constinit bool g_glibc_chunks;

inline std::uint64_t usable_bytes(void* block) noexcept {
  if (g_glibc_chunks) [[likely]] {
    constexpr std::uint64_t kMapped = 2;  // such a chunk has 16 bytes of its own, others 8
    constexpr std::uint64_t kFlags = 7;
    const std::uint64_t word = static_cast<const std::uint64_t*>(block)[-1];
    return (word & ~kFlags) - 8 - (word & kMapped) * 4;
  }
  return g_next.malloc_usable_size(block);
}

// What is alike in all functions that return a new block. `real` makes the call, `failed` tells a
// lack of memory from misuse. Both hold copies of what they need: then the hook can end in a jump
// to here, and a stack that begins at this function's caller needs no step out of the hook.
template <class Real, class Failed>
[[gnu::noinline]] void* observe_allocation_fully(Api api, std::uint64_t bytes, Real real,
                                                 Failed failed) noexcept {
  const Watch watch = watched(api);
  if (watch == Watch::off) {
    g_entered_unwatched = true;
    return real();
  }
  if (watch == Watch::on_and_new_may_be_pending) report_pending_new();
  const HookScope scope;
  if (!scope.outermost()) {
    void* const block = real();
    if (block != nullptr && scope.interrupted_recorder())
      recorder::count_allocate(Space::heap, bytes, usable_bytes(block));
    return block;
  }
  recorder::Request request{Space::heap, api, bytes};
  if (!recorder::admits(scope.in_hook(), request, bytes)) {
    report_failure(scope.in_hook(), request, recorder::FailedBy::recorder);
    errno = ENOMEM;
    return nullptr;
  }
  scope.leave_recorder();
  void* const block = real();
  if (block != nullptr) {
    recorder::on_allocate(
        scope.in_hook(),
        {Space::heap, api, reinterpret_cast<std::uint64_t>(block), bytes, usable_bytes(block)});
  } else if (bytes != 0 && failed()) {  // malloc(0) may return NULL and mean success
    report_failure(scope.in_hook(), request, recorder::FailedBy::system);
  }
  return block;
}

// The same; most calls are over soon.
template <class Real, class Failed>
[[gnu::always_inline]] inline void* observe_allocation(Api api, std::uint64_t bytes, Real real,
                                                       Failed failed) noexcept {
  recorder::ThreadState* const thread = recorder::quick_thread();
  if (thread == nullptr || watched(api) != Watch::on || !HookScope::idle() ||
      !recorder::passes_quickly(*thread, bytes)) [[unlikely]]
    return observe_allocation_fully(api, bytes, real, failed);
  {
    const QuickScope scope;
    if (void* const block = real(); block != nullptr) [[likely]] {
      recorder::count_quick_allocation(scope.in_hook(), *thread, bytes, usable_bytes(block));
      return block;
    }
  }
  if (bytes != 0 && failed()) report_unforeseen_failure(api, bytes);
  return nullptr;
}

// What is alike in all functions that give a block back: recorded before `real`, because another
// thread may have the address at once.
template <class Real>
[[gnu::noinline]] void observe_release_fully(Api api, void* block, Real real) noexcept {
  const Watch watch = watched(api);
  if (watch == Watch::off || block == nullptr) return real();
  if (watch == Watch::on_and_new_may_be_pending) report_pending_new();
  const HookScope scope;
  if (scope.outermost()) {
    recorder::on_free(scope.in_hook(), Space::heap, api, reinterpret_cast<std::uint64_t>(block),
                      usable_bytes(block));
    scope.leave_recorder();
  } else if (scope.interrupted_recorder()) {
    recorder::count_free(Space::heap, usable_bytes(block));
  }
  real();
}

template <class Real>
[[gnu::always_inline]] inline void observe_release(Api api, void* block, Real real) noexcept {
  recorder::ThreadState* const thread = recorder::quick_thread();
  if (thread == nullptr || block == nullptr || watched(api) != Watch::on || !HookScope::idle() ||
      recorder::may_be_recorded(block)) [[unlikely]]
    return observe_release_fully(api, block, real);
  const QuickScope scope;
  recorder::count_quick_release(scope.in_hook(), *thread, usable_bytes(block));
  scope.leave_recorder();
  real();
}

}  // namespace oomrec::shim

extern "C" void hook_free(void* block) asm("free");

// The path of every heap event from a hook to the recorder.
//
// A block is counted at both its allocation and its release, or at neither. Allocations of a nested
// call are part of the outer call. Those of a signal handler that interrupts the recorder only
// change the totals. The program gets the real function's result, errno included.
#pragma once

#include <sys/auxv.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "common/session/functions.h"
#include "common/system/hook_scope.h"
#include "recorder/events/exact_quick.h"
#include "recorder/events/heap.h"
#include "recorder/events/in_flight.h"
#include "recorder/events/quick.h"
#include "recorder/state/request.h"
#include "recorder/state/thread_state.h"
#include "shim/interpose/next.h"

namespace oomrec::shim {

// Whether calls of a function are recorded. None are before the constructor has run. Nor are those
// of a function from another library than the next malloc: its blocks are counted when they pass
// that allocator.
enum class Watch : std::uint8_t {
  off,
  on,
  on_with_pending_new,  // on, and the allocator has its own operator new (operator_new.cpp)
};
extern constinit Watch g_watched[kHostApiCount];

inline std::uint64_t saturating_multiply(std::uint64_t a, std::uint64_t b) noexcept {
  std::uint64_t product;
  return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

inline Watch watched(Api api) noexcept { return g_watched[static_cast<std::size_t>(api)]; }

// Set by an allocation that passed an unwatched hook. It tells the constructor whether malloc is
// bound to us at all, and whether an operator new calls it.
extern constinit bool g_entered_unwatched;

// Sets g_glibc_chunks.
void find_chunks() noexcept;

// Whether the allocator's usable sizes cannot be right, so that the heap has no totals.
bool are_sizes_unknown() noexcept;

// The file whose malloc() serves the program: "libc.so.6", "libjemalloc.so.2"; empty: unknown. It
// is valid while that file is loaded.
std::string_view allocator_name() noexcept;

// Finds the next allocator and starts watching, after find_chunks(). Called by the constructor, or
// when the library attaches to a running program.
void start_heap() noexcept;

void stop_heap() noexcept;

// `allocator`: the library of the next malloc. True if it has its own operator new.
bool start_operator_new(const void* allocator) noexcept;

// Calls `visit` for each operator new and delete that is the allocator's own.
void visit_own_new(void (*visit)(const char* symbol, const void* next) noexcept) noexcept;

// Where the library of a function begins in memory; for the constructor. nullptr: in none.
const void* library_of(const void* function) noexcept;

// Whether the program's own file is mapped from here: its headers are.
inline bool is_program_at(std::uint64_t start) noexcept {
  constexpr std::uint64_t kHeaderBytes = 4096;
  return ::getauxval(AT_PHDR) - start < kHeaderBytes;
}

// A failed `operator new` becomes visible only by what follows: the allocation by the new-handler
// or of the exception. Each hook of the heap calls this first while one may be pending.
void report_pending_new() noexcept;

// Reports a failed heap request, unless the `operator new` around it has already reported it.
void report_failure(InHook, const recorder::Request&, recorder::FailedBy) noexcept;

// The same outside a scope.
[[gnu::cold]] void report_failure_outside_scope(Api, std::uint64_t bytes) noexcept;

// Whether a mapping of this size is part of an allocator's own `operator new` that is running on
// this thread.
bool is_part_of_new(std::uint64_t bytes) noexcept;

// Whether a block's size can be read from glibc's chunk header: in a cache line that free touches
// anyway.
extern constinit bool g_glibc_chunks;

// The flag of chunks with a header of 16 bytes; others have 8. Mapped chunks, but not from
// glibc 2.43 on.
extern constinit std::uint64_t g_long_header_flag;
inline constexpr std::uint64_t kMappedFlag = 2;

inline std::uint64_t chunk_usable_bytes(const void* block) noexcept {
  constexpr std::uint64_t kFlags = 7;
  const std::uint64_t word = static_cast<const std::uint64_t*>(block)[-1];
  return (word & ~kFlags) - 8 - (word & g_long_header_flag) * 4;
}
// Of another allocator. Not inlined: the hooks are shorter without what the call needs.
[[gnu::cold]] std::uint64_t ask_usable_bytes(void* block) noexcept;

inline std::uint64_t usable_bytes(void* block) noexcept {
  return g_glibc_chunks ? chunk_usable_bytes(block) : ask_usable_bytes(block);
}

// What an alignment keeps free behind a block of glibc's: the distance between such blocks, which
// lie one after the other, less the block. Smaller blocks may come to lie there, blocks of the same
// kind do not. Of more than a page, the pages between are not touched; a block of this size mostly
// has its own mapping. Other allocators count it as usable.
inline constexpr std::uint64_t kPageAligned = 4096;
inline std::uint16_t gap_behind(std::uint64_t bytes, std::uint64_t alignment) noexcept {
  constexpr std::uint64_t kMapped = 128 * 1024, kLeastChunk = 32, kHeader = 8, kUnit = 16;
  if (!g_glibc_chunks || alignment <= kUnit || bytes >= kMapped) return 0;
  const std::uint64_t chunk = std::max(kLeastChunk, (bytes + kHeader + kUnit - 1) & ~(kUnit - 1));
  const std::uint64_t step = std::bit_ceil(std::min(alignment, kPageAligned));
  return static_cast<std::uint16_t>(-chunk & (step - 1));
}

// The common part of all functions that return a new block. `real` makes the call; `failed`
// distinguishes lack of memory from misuse. Both hold copies of what they need. So the hook can end
// in a jump to this function, and a stack that starts at this function's caller needs no step out
// of the hook.
template <class Real, class Failed>
[[gnu::noinline]] void* observe_allocation_fully(Api api, std::uint64_t bytes, Real real,
                                                 Failed failed, std::uint16_t gap_bytes) noexcept {
  const Watch watch = watched(api);
  if (watch == Watch::off) {
    g_entered_unwatched = true;
    return real();
  }
  if (watch == Watch::on_with_pending_new) report_pending_new();
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
  recorder::InFlight in_flight{scope.in_hook(), request, bytes};
  scope.leave_recorder();
  void* const block = real();
  if (block != nullptr) {
    recorder::on_allocate(scope.in_hook(),
                          {Space::heap, api, reinterpret_cast<std::uint64_t>(block), bytes,
                           usable_bytes(block), 0, gap_bytes});
  } else if (bytes != 0 && failed()) {  // malloc(0) may return NULL and mean success
    in_flight.end();
    report_failure(scope.in_hook(), request, recorder::FailedBy::system);
  }
  return block;
}

// The same on the fast path of sampled mode.
template <class Real, class Failed>
[[gnu::always_inline]] inline void* observe_allocation_quickly(recorder::ThreadState& thread,
                                                               Api api, std::uint64_t bytes,
                                                               Real real, Failed failed) noexcept {
  {
    const QuickScope scope;
    if (void* const block = real(); block != nullptr) [[likely]] {
      recorder::count_quick_allocation(scope.in_hook(), thread, bytes, usable_bytes(block));
      return block;
    }
  }
  if (bytes != 0 && failed()) report_failure_outside_scope(api, bytes);
  return nullptr;
}

// The same on the fast path of exact mode, which is for glibc's blocks.
template <class Real, class Failed>
[[gnu::always_inline]] inline void* observe_allocation_exactly(recorder::ThreadState& thread,
                                                               Api api, std::uint64_t bytes,
                                                               Real real, Failed failed) noexcept {
  recorder::maybe_pause(thread);
  void* block;
  {
    const QuickScope scope;
    block = real();
  }
  if (block != nullptr) [[likely]]
    return recorder::record_exactly(api, block, bytes, chunk_usable_bytes(block));
  if (failed()) report_failure_outside_scope(api, bytes);
  return nullptr;
}

// The same by the fastest path that the call may take.
template <class Real, class Failed>
[[gnu::always_inline]] inline void* observe_allocation(Api api, std::uint64_t bytes, Real real,
                                                       Failed failed,
                                                       std::uint16_t gap_bytes = 0) noexcept {
  // First, because without a recorder a thread's storage may not be ours to read.
  if (watched(api) != Watch::on) [[unlikely]]
    return observe_allocation_fully(api, bytes, real, failed, gap_bytes);
  recorder::ThreadState* const thread = recorder::t_thread;
  if (thread == nullptr || !HookScope::idle()) [[unlikely]]
    return observe_allocation_fully(api, bytes, real, failed, gap_bytes);
  if (thread->quick) [[likely]] {
    if (recorder::passes_quickly(*thread, bytes + gap_bytes)) [[likely]]
      return observe_allocation_quickly(*thread, api, bytes, real, failed);
  } else if (gap_bytes == 0 && recorder::is_small(*thread, bytes)) {
    return observe_allocation_exactly(*thread, api, bytes, real, failed);
  }
  return observe_allocation_fully(api, bytes, real, failed, gap_bytes);
}

// The common part of all functions that release a block. It is recorded before `real`, because
// another thread may get the address at once.
template <class Real>
[[gnu::noinline]] void observe_release_fully(Api api, void* block, Real real) noexcept {
  const Watch watch = watched(api);
  if (watch == Watch::off || block == nullptr) return real();
  if (watch == Watch::on_with_pending_new) report_pending_new();
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

// The same on the fast path of exact mode. False: nothing was done.
template <class Real>
[[gnu::always_inline]] inline bool observe_release_exactly(recorder::ThreadState& thread, Api api,
                                                           void* block, Real real) noexcept {
  recorder::maybe_pause(thread);
  const QuickScope scope;
  const auto address = reinterpret_cast<std::uint64_t>(block);
  if (!recorder::release_quickly(scope.in_hook(), thread, api, address, chunk_usable_bytes(block)))
      [[unlikely]]
    return false;
  scope.leave_recorder();
  real();
  return true;
}

// The same by the fastest path that the call may take.
template <class Real>
[[gnu::always_inline]] inline void observe_release(Api api, void* block, Real real) noexcept {
  if (watched(api) != Watch::on) [[unlikely]]
    return observe_release_fully(api, block, real);
  recorder::ThreadState* const thread = recorder::t_thread;
  if (thread == nullptr || block == nullptr || !HookScope::idle()) [[unlikely]]
    return observe_release_fully(api, block, real);
  if (thread->quick) [[likely]] {
    if (!recorder::may_be_recorded(block)) [[likely]] {
      const QuickScope scope;
      recorder::count_quick_release(scope.in_hook(), *thread, usable_bytes(block));
      scope.leave_recorder();
      return real();
    }
  } else if (thread->exact_quick && observe_release_exactly(*thread, api, block, real)) {
    return;
  }
  observe_release_fully(api, block, real);
}

// A block of the bootstrap arena moves to the heap when it is resized.
void* copy_out(const void* block, std::uint64_t bytes) noexcept;

// realloc is a release and an allocation in one call; a failure leaves the old block unchanged.
template <class Real>
void* observe_reallocation(Api api, void* block, std::uint64_t bytes, Real real) noexcept {
  if (is_bootstrap_block(block)) return copy_out(block, bytes);
  if (block == nullptr) return observe_allocation(api, bytes, real, [] { return true; });
  const Watch watch = watched(api);
  if (watch == Watch::off) return real();
  if (watch == Watch::on_with_pending_new) report_pending_new();
  const HookScope scope;
  const std::uint64_t old_address = reinterpret_cast<std::uint64_t>(block);
  if (!scope.outermost()) {
    const bool counts = scope.interrupted_recorder();
    const std::uint64_t old_usable = counts ? usable_bytes(block) : 0;
    void* const moved = real();
    if (counts && (moved != nullptr || bytes == 0)) {
      recorder::count_free(Space::heap, old_usable);
      if (moved != nullptr) recorder::count_allocate(Space::heap, bytes, usable_bytes(moved));
    }
    return moved;
  }
  const std::uint64_t old_usable = usable_bytes(block);
  const std::uint64_t growth = bytes > old_usable ? bytes - old_usable : 0;
  recorder::Request request{Space::heap, api, bytes};
  request.old_block = old_address;
  if (!recorder::admits(scope.in_hook(), request, growth)) {
    report_failure(scope.in_hook(), request, recorder::FailedBy::recorder);
    errno = ENOMEM;
    return nullptr;
  }
  recorder::InFlight in_flight{scope.in_hook(), request, bytes};
  const recorder::Released released =
      recorder::on_free(scope.in_hook(), Space::heap, api, old_address, old_usable);
  scope.leave_recorder();
  void* const moved = real();
  if (moved != nullptr) {
    recorder::on_allocate(
        scope.in_hook(),
        {Space::heap, api, reinterpret_cast<std::uint64_t>(moved), bytes, usable_bytes(moved)});
  } else if (bytes != 0) {
    recorder::restore(scope.in_hook(), Space::heap, released);
    in_flight.end();
    report_failure(scope.in_hook(), request, recorder::FailedBy::system);
  } else {
    recorder::end_release(scope.in_hook());
  }
  return moved;
}

}  // namespace oomrec::shim

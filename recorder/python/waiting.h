// The Python frames that wait for a thread that runs no Python.
//
// Libraries compute in threads of their own (Polars, Arrow, DuckDB), while the thread that called
// them waits in native code. What those threads allocate is the doing of the line that waits. Who
// waits is certain only if one thread of the interpreter's is in native code that is not the
// standard library's (queues, sockets, locks). Of several, the lines count that they all have,
// outwards from the first that is the same. From Python 3.11 on a thread does not count either that
// the kernel has in a call for something else: it sleeps, or waits for another process.
//
// That thread may go on at any time, and its frames vanish. So everything is read by system calls,
// which do not fault, and counts only if the thread waits in the same frame afterwards.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <string_view>

#include "common/system/hook_scope.h"
#include "recorder/python/chain_cache.h"

namespace oomrec::stack {

// A state of the interpreter's from which the others are found: that of the last thread whose
// frames were read.
inline constinit std::atomic<std::uint64_t> g_some_thread_state{0};

// Whether there is a thread with Python at all.
inline bool may_be_waited_for() noexcept {
  return g_some_thread_state.load(std::memory_order_relaxed) != 0;
}

// Their words, innermost first, at most as many as fit. Returns how many; 0: nobody waits, or those
// who do have no line of the program's in common. Within UsesNodes. Searches in at most a fiftieth
// of the time: what was found last counts again while the thread waits in the same frames.
std::size_t waiting_frames(InHook, std::span<std::uint64_t> words) noexcept;

// The same for a thread that runs Python, but only code of packages, such as a pool's: the frames,
// from a line of the program's own outwards, of the threads that have called the package that this
// thread works for, and wait there (joblib, pandas' readers, zarr).
std::size_t calling_frames(InHook, const PythonStack& worker,
                           std::span<std::uint64_t> words) noexcept;

// The same for a thread that runs no Python, but native code of this package (V8 in mini-racer), if
// nobody waits in native code for it.
std::size_t frames_calling(InHook, std::string_view package,
                           std::span<std::uint64_t> words) noexcept;

void reset_waiting_after_fork(InHook) noexcept;

}  // namespace oomrec::stack

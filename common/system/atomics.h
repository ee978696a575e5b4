// Additions to words that other threads read, at the lowest cost for each case.
#pragma once

#include <atomic>
#include <cstdint>

#include "common/machine/instructions.h"

namespace oomrec {

// Not 0 while the process has only one thread: glibc's __libc_single_threaded, which the library's
// start looks up by name, because only glibc ≥ 2.32 has it.
[[gnu::visibility("hidden")]] inline constexpr char kMayHaveThreads = 0;
[[gnu::visibility("hidden")]] inline constinit const char* g_single_threaded = &kMayHaveThreads;

// Adds to a word that only this thread writes. A signal handler of this thread that adds to the
// same word in between loses nothing.
using machine::add_own;

// Adds to a word that any thread writes; without a lock while the process has only one thread.
template <class T>
inline void add_shared(std::atomic<T>& word, T delta) noexcept {
  if (*g_single_threaded != 0) {
    add_own(word, delta);
  } else {
    word.fetch_add(delta, std::memory_order_relaxed);
  }
}

// Raises `word` to `value` if it is lower.
template <class T>
inline void raise_to(std::atomic<T>& word, T value) noexcept {
  T seen = word.load(std::memory_order_relaxed);
  while (seen < value && !word.compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
  }
}

// Lowers `word` to `value` if it is higher.
template <class T>
inline void lower_to(std::atomic<T>& word, T value) noexcept {
  T seen = word.load(std::memory_order_relaxed);
  while (seen > value && !word.compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
  }
}

}  // namespace oomrec

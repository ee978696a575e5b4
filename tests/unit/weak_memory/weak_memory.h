// What a reader can see of memory that others write, on any processor that C++ allows.
//
// A *litmus test* runs the real code. It is compiled with -fsanitize=thread, so each access to
// memory calls a function; those are here, in place of ThreadSanitizer's. First the writers run,
// one after the other, and each of their stores is kept. Then the reader runs once for each choice
// of the stores that its loads may return. So a missing barrier is found on x86-64, too, where no
// run would show it.
//
// The model is the view-based one of release and acquire (Kang et al., "A promising semantics for
// relaxed-memory concurrency", POPL 2017, without promises). A store is a message in the history of
// its location. A thread's *view* says how far in each history it has come; it never goes back. A
// message of a release store, or of any store after a release fence, has its thread's view at
// that point, which an acquire load, or a load before an acquire fence, adds to its own.
//
// Not covered:
// * A reader that stores to the watched memory: then all interleavings count, not only all values.
//   Such a store ends the program.
// * Writers at the same time: here each sees all stores so far, as with a lock around them.
// * A load that is reordered after a later store. A reader has no stores.
// * Accesses by inline assembly and by the kernel; sequential consistency: it is release and
//   acquire here.
//
// A plain access counts as a relaxed one, in words of 8 bytes, or of 4. Bytes of one word of 4 are
// one location.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

namespace oomrec::weak_memory {

// Accesses to these bytes count from now on. Others, as to the reader's own variables, do not.
void watch(const void* start, std::size_t bytes);

// Ends the watching, and forgets all stores.
void reset();

// Runs `body` as this thread of the writing side. It has seen what all before it stored only if it
// synchronizes with them.
void write(unsigned thread, const std::function<void()>& body);

// Runs `body` once for each choice of what its loads return, of what was stored since the last
// settle(). Returns the number of runs.
std::uint64_t read(const std::function<void()>& body);

// Runs `body` once after each of these stores, in their order, with all stores before it and none
// after it: so a killed writer leaves the memory. Returns the number of runs.
std::uint64_t read_after_each_store(const std::function<void()>& body);

// All threads have seen all stores so far: only later ones are a reader's choice.
void settle();

}  // namespace oomrec::weak_memory

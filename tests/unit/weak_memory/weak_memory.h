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
// Threads that meet without a lock are run by meet(): by all orders of their accesses, and with all
// choices of what their loads return. There, sequential consistency is that of C++20, with the
// order in which the accesses are made as the one order of all.
//
// Not covered:
// * A reader that stores to the watched memory: meet() is for that. Such a store ends the program.
// * Of write(), writers at the same time: each sees all stores so far, as with a lock around them.
//   Sequential consistency is release and acquire there.
// * A load that is reordered after a later store of its thread, and two stores to one word that
//   readers see in another order than that in which they were made. To find out whether a thread
//   may still use what another one changes, let it store a word after its last use, which the other
//   one must then find.
// * Accesses by inline assembly and by the kernel.
//
// A plain access counts as a relaxed one, in words of 8 bytes, or of 4. Bytes of one word of 4 are
// one location.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

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

// Runs `threads` at the same time, from what the memory is now: once for each order of their
// accesses, and choice of what their loads return. `check` runs after each of them, and has seen
// everything. No body may throw. Returns the number of runs.
std::uint64_t meet(const std::vector<std::function<void()>>& threads,
                   const std::function<void()>& check);

// All threads have seen all stores so far: only later ones are a reader's choice.
void settle();

}  // namespace oomrec::weak_memory

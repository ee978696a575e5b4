// What happens to an event. The shim calls these; nothing here knows a symbol name of the program.
//
// All are for any thread, signal handler and TLS destructor, keep the promise of InHook and never
// fail: when a table is full the event is counted in Header::dropped_events and forgotten. Before
// start(), after an abandonment, and where the recorder is off, they do nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "common/options/options.h"
#include "common/session/vocabulary.h"
#include "common/system/hook_scope.h"

namespace oomrec::text {
struct ExceptionTexts;
}

namespace oomrec::recorder {

// A block that now belongs to the program. `bytes` as asked for; `usable_bytes` as the allocator
// counts it (heap); 0 where that is not known.
struct Block {
  Space space;
  Api api;
  std::uint64_t address;
  std::uint64_t bytes;
  std::uint64_t usable_bytes;
  std::uint32_t device = 0;  // of PyTorch's: entry in `devices`
};

struct Request {
  Space space;
  Api api;
  std::uint64_t bytes;
  bool probe = false;        // the caller has a plan B: recorded and counted, no bundle
  std::uint8_t rule = 0;     // of --fail, that refuses it (admits() finds it), from 1
  std::uint32_t device = 0;  // entry in the session's `devices`; 0: none, or not known whose
};

// A mapping as the program asked for it and the kernel gave it.
struct Mapping {
  Api api;
  std::uint64_t address;
  std::uint64_t bytes;
  int protection;
  int flags;
  bool file;
};

// --- Life ---------------------------------------------------------------------------------------

// Starts recording in this process image: session, stacks, Python, limits. Called once, from the
// library's constructor. False: the recorder stays off, and has said why unless quiet.
bool start(const Options&) noexcept;

// Whether events are recorded at all: one load, checked first by every function below.
bool is_active() noexcept;

// The child of a fork (seen by the hook, or by the wiped page after a raw clone): the parent's
// session is let go; one of our own begins at the first MiB or the first refusal.
void on_fork_child(InHook) noexcept;

// The process image is about to be replaced; taken back when exec failed. `same_process` is false
// in a vfork child, where nothing may be marked.
void before_exec(InHook) noexcept;
void exec_failed(InHook) noexcept;

enum class ExitKind : std::uint8_t { exit, quick_exit, immediate };
// The process is ending by its own will. Writes the last refusal's bundle if it is in none yet,
// completes outcomes, marks the session and removes its file when nobody needs it.
void on_exit(InHook, int status, ExitKind) noexcept;

// A child was waited for. Recorded for how a recorded parent's children died.
void on_child_status(InHook, int pid, int wait_status) noexcept;

// --- Heap ---------------------------------------------------------------------------------------

// Before the first event, if it is known: the allocator's blocks are 2^shift bytes apart, or no
// larger than half of that (4 or 5: session/layout.h). Makes exact recording of small blocks cheap.
void note_block_distance(std::uint32_t shift) noexcept;

// False: the request would pass the soft limit, or a rule of --fail speaks of it, and it must be
// refused with ENOMEM. Called before the real function. `counted_bytes`: what it would add to what
// the limit counts.
bool admits(InHook, Request&, std::uint64_t counted_bytes) noexcept;

void on_allocate(InHook, const Block&) noexcept;

// A block is about to go back, called *before* the real free (another thread may get the address at
// once). The result restores it when a realloc fails.
struct Released {
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
  std::uint64_t usable_bytes = 0;
  std::uint32_t holder = 0;
  std::uint32_t node = 0;  // instead of the holder, where it was in the side table
  std::uint32_t weight = 0;
  std::uint32_t birth_s = 0;
};
Released on_free(InHook, Space, Api, std::uint64_t address, std::uint64_t usable_bytes,
                 std::uint32_t device = 0) noexcept;
void restore(InHook, Space, const Released&) noexcept;

// In a signal handler that interrupted the recorder: totals only. usable_bytes as above.
void count_allocate(Space, std::uint64_t bytes, std::uint64_t usable_bytes) noexcept;
void count_free(Space, std::uint64_t usable_bytes) noexcept;

// --- Mappings -----------------------------------------------------------------------------------

void on_map(InHook, const Mapping&) noexcept;
// The same of a file, which `descriptor` is open for: where it is one in memory, whether there is
// room for it.
void on_shared_file(InHook, const Mapping&, int descriptor, std::uint64_t offset) noexcept;
void on_unmap(InHook, Api, std::uint64_t address, std::uint64_t bytes) noexcept;
// `old_stays`: the old range is mapped as before, its pages have moved (MREMAP_DONTUNMAP).
void on_remap(InHook, std::uint64_t old_address, std::uint64_t old_bytes, std::uint64_t new_address,
              std::uint64_t new_bytes, bool old_stays = false) noexcept;
void on_protect(InHook, std::uint64_t address, std::uint64_t bytes, int protection) noexcept;
void on_break(InHook, Api, std::uint64_t old_break, std::uint64_t new_break) noexcept;

// Bytes that would newly count if this mapping, or this change of protection, were made.
std::uint64_t counted_bytes(InHook, const Mapping&) noexcept;
std::uint64_t counted_by_protect(InHook, std::uint64_t address, std::uint64_t bytes,
                                 int protection) noexcept;
// A resize: its growth (the whole new range where the old stays), when the old range counts; else
// 0.
std::uint64_t counted_by_remap(InHook, std::uint64_t old_address, std::uint64_t growth) noexcept;

// --- Failures -----------------------------------------------------------------------------------

// Records that `request` was refused with `error` (an errno; of a GPU's request, its driver's
// code); `by_us`: admits() or admits_on_device() did. May write a
// bundle and report on stderr; returns within the bundle's time bound.
void on_failure(InHook, const Request&, int error, bool by_us) noexcept;

// oomrec_dump(): a bundle now, with what the program says of it (nullptr: nothing).
struct Told {
  std::uint64_t bundle = 0;  // its number in the process; 0: there is none
  bool texts = false;        // all of the texts are in it
};
Told dump(InHook, std::string_view reason, const text::ExceptionTexts* texts = nullptr) noexcept;

// oomrec_exception(): completes the bundle of this thread's latest refusal, if that is later than
// the refusal number `since`; with `any_thread` of the newest one of all, if this thread has none;
// else a bundle with the trigger `exception`.
Told tell_exception(InHook, const text::ExceptionTexts&, std::uint32_t since,
                    bool any_thread) noexcept;

// The number of this thread's latest refusal; 0: none yet. And of all threads'.
std::uint32_t last_failure(InHook) noexcept;
std::uint32_t failures(InHook) noexcept;

// The absolute path of the newest bundle, of the one that tells of this thread's latest refusal, of
// bundle `number`: bytes in `path`, which is as long as a path may be; 0: there is none. Waits
// until it is in its place, within the bundle's time bound.
std::size_t last_bundle(InHook, std::span<char> path) noexcept;
std::size_t failure_bundle(InHook, std::span<char> path) noexcept;
std::size_t bundle_path(InHook, std::uint64_t number, std::span<char> path) noexcept;

// oomrec_mark(): the program says where in its work it is.
void mark(InHook, std::string_view text) noexcept;

// One that came in a signal handler while the recorder was at work: counted as dropped.
void drop_mark() noexcept;

void set_limit(InHook, std::uint64_t bytes) noexcept;

// --- Refusals on purpose (--fail) ---------------------------------------------------------------

// Whether there are any rules, and whether one is for `operator new`.
bool injects() noexcept;
bool injects_into_new() noexcept;

// This thread's next request of the heap is made by an `operator new`.
void announce_new() noexcept;
// The same request again: an `operator new` that a rule refused is made once more, by a library.
void refuse_new_again() noexcept;
// On this thread: what the shim itself asks of the loader is never refused.
void pause_injection(bool paused) noexcept;

// --- Threads, modules, sandboxes ----------------------------------------------------------------

void on_module_unload(InHook) noexcept;  // dlclose returned: addresses may mean something else now

// The program is about to install a seccomp filter: no system call of our own from here on. Taken
// back when the kernel refused the filter.
void on_sandbox(InHook) noexcept;
void sandbox_failed(InHook) noexcept;

// The heap is not observed, and why: for show, info and the bundle.
void note_heap(InHook, std::string_view note) noexcept;

}  // namespace oomrec::recorder

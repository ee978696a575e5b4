// The life of the recorder in a process: start, fork, exec, sandbox. README.md lists the folders
// beside it.
//
// The shim calls this, and the headers of events. All of it may be called on any thread, in signal
// handlers and TLS destructors, keeps the promise of InHook, and never fails: when a table is full
// the event is counted in Header::dropped_events and forgotten. Nothing happens before start(), or
// while the recorder is off.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "common/options/options.h"
#include "common/session/vocabulary.h"
#include "common/system/hook_scope.h"

namespace oomrec::recorder {

// Starts recording in this process image: session, stacks, Python, limits. Called once, from the
// library's constructor, or after forget_recording(). False: the recorder stays off, and has
// reported why on stderr unless quiet.
bool start(const Options&) noexcept;

// Why start() returned false; static text.
const char* off_reason() noexcept;

// Why the recording is in private memory, where no command can read it: "/dev/shm/oomrec-1000: Too
// many open files"; nullptr: it is in a file.
const char* private_recording_reason() noexcept;

// Ends the recording of a program that goes on: what was recorded is removed. Threads that are
// inside the recorder may still use its memory, which therefore stays mapped.
void stop(InHook) noexcept;

// After stop(): forgets the recording, for another start(). The caller has proven that no other
// thread is inside the recorder, and none points to its state there (t_thread). False: it still
// writes a bundle.
bool forget_recording(InHook) noexcept;

// Whether the recorder prints nothing on stderr, from now on.
void set_quiet(bool quiet) noexcept;

// Whether events are recorded at all: one load.
bool is_active() noexcept;

// The child of a fork (seen by the hook, or by the wiped page after a raw clone): the parent's
// session is detached; the child's own session begins at the first MiB or the first failure.
void on_fork_child(InHook) noexcept;

// A fork by a signal handler that interrupted a hook: before it, and after it in either process.
// The child, which returns into the hook, keeps all that the hook may be using, and is not
// recorded.
void before_fork_inside_hook(InHook) noexcept;
void after_fork_inside_hook(InHook, bool in_child) noexcept;

// The process image is about to be replaced; undone when exec has failed. Does nothing in a vfork
// child, which must not mark its parent's session.
void before_exec(InHook) noexcept;
void exec_failed(InHook) noexcept;
// A process of the run starts a program without the recorder: why, as a sentence about the program;
// empty: its exec has failed. For `oomrec run`; else false. Also in a vfork child: stores nothing.
bool note_unrecorded_image(InHook, std::int32_t pid, std::string_view reason) noexcept;

// In the child of daemon(), before on_fork_child: the parent ends without a hook, so the child
// removes its recording, unless something in it is still to be explained.
void on_daemon_child(InHook) noexcept;

// dlclose has returned: its addresses may belong to another module from now on.
void on_module_unload(InHook) noexcept;

// The program is about to install a seccomp filter: the recorder makes no system calls from here
// on. Undone when the kernel has rejected the filter.
void on_sandbox(InHook) noexcept;
void sandbox_failed(InHook) noexcept;

// Records why the heap is not observed: for show, info and the bundle.
void record_heap_note(InHook, std::string_view note) noexcept;

// Records whose malloc() serves the program. The name stays valid.
void record_allocator(InHook, std::string_view file_name) noexcept;

// Like record_heap_note(), for a library that the program has loaded in a namespace of its own,
// with a heap of its own (dlmopen). Of several, the first few are named.
void record_other_namespace(InHook, std::string_view path) noexcept;

// What the interpreter's heap held when it was attached to, by type (Header::preexisting_objects).
void record_preexisting_objects(InHook, std::string_view counts) noexcept;

}  // namespace oomrec::recorder

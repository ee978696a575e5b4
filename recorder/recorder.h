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

namespace oomrec::recorder {

// Starts recording in this process image: session, stacks, Python, limits. Called once, from the
// library's constructor. False: the recorder stays off, and has said why unless quiet.
bool start(const Options&) noexcept;

// Whether events are recorded at all: one load, checked first by every function below.
bool is_active() noexcept;

// The child of a fork (seen by the hook, or by the wiped page after a raw clone): the parent's
// session is let go; one of our own begins at the first MiB or the first failure.
void on_fork_child(InHook) noexcept;

// The process image is about to be replaced; taken back when exec failed. `same_process` is false
// in a vfork child, where nothing may be marked.
void before_exec(InHook) noexcept;
void exec_failed(InHook) noexcept;

void on_module_unload(InHook) noexcept;  // dlclose returned: addresses may mean something else now

// The program is about to install a seccomp filter: no system call of our own from here on. Taken
// back when the kernel refused the filter.
void on_sandbox(InHook) noexcept;
void sandbox_failed(InHook) noexcept;

// The heap is not observed, and why: for show, info and the bundle.
void note_heap(InHook, std::string_view note) noexcept;

}  // namespace oomrec::recorder

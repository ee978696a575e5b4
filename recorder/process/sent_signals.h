// Records the signals by which the process ends others. Only the sender can record that a parent
// ended its worker, and how large the worker was then.
#pragma once

#include <cstdint>

#include "common/session/layout.h"
#include "common/system/hook_scope.h"

namespace oomrec::recorder {

// Whether the signal may end another process: SIGTERM or SIGKILL, not to a group.
bool may_end_another(int pid, int signal) noexcept;

// What the process has resident now; 0: unknown.
std::uint64_t resident_bytes_of(InHook, int pid) noexcept;

// The signal has been sent to a process that had so much resident before. Captures the stack.
void on_signal_sent(InHook, int pid, int signal, std::uint64_t resident_bytes) noexcept;

void reset_sent_signals_after_fork(InHook) noexcept;

// Whether the process has ended one that was large enough for a bundle, by its resident memory.
bool has_ended_a_large_process(InHook) noexcept;

}  // namespace oomrec::recorder

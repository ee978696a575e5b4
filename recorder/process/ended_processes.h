// Processes that ended: the children that a signal ended, since only their parent learns how, and
// its own end may follow from theirs; and those that this process ended, as only the sender can
// record.
#pragma once

#include <cstdint>

#include "common/session/layout.h"
#include "common/system/hook_scope.h"

namespace oomrec::recorder {

// The program has waited for a child.
void on_child_status(InHook, int pid, int wait_status) noexcept;

// For so long after the wait a child's end may be the reason for what its parent does.
inline constexpr std::uint64_t kChildIsRecentNs = 10'000'000'000;

// Records `pid` if a signal that comes of a lack of memory ended it. Does not replace a recent one:
// a parent loses one child first, and then ends the others itself. Any thread; no lock.
void record_ended_child(session::Header&, int pid, int wait_status, std::uint64_t now_ns) noexcept;

// Whether a recorded child was waited for recently.
bool lost_child_recently(const session::Header&, std::uint64_t now_ns) noexcept;

// --- Signals by which the process ends others: also how large a worker was then

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

// The children that a signal ended, in the header of their parent's session: only the parent learns
// how they ended, and its own end may follow from theirs.
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

}  // namespace oomrec::recorder

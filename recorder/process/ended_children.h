// What a process keeps in its session's header of its children that a signal ended: it alone is
// told how they ended, and its own end may follow from theirs.
#pragma once

#include <cstdint>

#include "common/session/layout.h"
#include "common/system/hook_scope.h"

namespace oomrec::recorder {

// A child was waited for. Recorded for how a recorded parent's children died.
void on_child_status(InHook, int pid, int wait_status) noexcept;

// A child's end is a reason for what its parent does this long after it has waited.
inline constexpr std::uint64_t kChildIsRecentNs = 10'000'000'000;

// Keeps `pid` if one of the signals that lack of memory sends ended it. One that was kept a short
// while ago is not given up for it: a parent first loses one child, and then ends the others
// itself. Any thread; no lock.
void record_ended_child(session::Header&, int pid, int wait_status, std::uint64_t now_ns) noexcept;

// One of those that are kept was waited for a short while before.
bool lost_child_recently(const session::Header&, std::uint64_t now_ns) noexcept;

}  // namespace oomrec::recorder

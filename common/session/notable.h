// What readers ask about a process that has ended.
#pragma once

#include "common/session/types.h"

namespace oomrec::session {

// A process that held less leaves no bundle, unless something else calls for one. The shells that
// start a program are recorded, too.
inline constexpr u64 kNotableBytes = u64{16} << 20;

// EndLevels::flags: what is known of why a recorded parent sent the signal that ended its child, if
// it was not for memory. Neither of two flags: older recordings, or a known reason.
inline constexpr u32 kSenderReasonUnknown = 1;
// Likewise; but the parent had ended another child from the same line and at the same size, and
// this one was growing.
inline constexpr u32 kSenderPerhapsForMemory = 2;
// Its parent, `oomrec run`, was gone: it had ended before, or with it.
inline constexpr u32 kLauncherGone = 4;
// The parent sends it to its children when it stops itself, whatever they hold.
inline constexpr u32 kSenderStops = 8;

}  // namespace oomrec::session

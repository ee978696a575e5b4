// EndLevels::flags: what is known of why a recorded parent sent the signal that ended its child, if
// it was not for memory. Neither flag: older recordings, or a known reason.
#pragma once

#include "common/session/types.h"

namespace oomrec::session {

inline constexpr u32 kSenderReasonUnknown = 1;
// Likewise; but the parent had ended another child from the same line and at the same size, and
// this one was growing.
inline constexpr u32 kSenderPerhapsForMemory = 2;

}  // namespace oomrec::session

// What the names of the functions on a crash's stack say, and on that of its refusal.
//
// Only the process itself can be asked for them: so they become flags of the crash.
#pragma once

#include "common/text/frames.h"

namespace oomrec::helper {

// kCrashTerminate, kCrashNew and kCrashOtherThrow, as far as they hold. At most 20 look-ups of a
// name.
std::uint32_t flags_by_name(InHook, const session::View&, const session::Crash&,
                            text::ExportedName) noexcept;

}  // namespace oomrec::helper

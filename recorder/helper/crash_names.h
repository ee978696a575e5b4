// Classifies a crash by the names of the functions on its stack and on the stack of the failed
// request.
//
// Only the process itself can resolve these names, so the result is stored as flags of the crash.
#pragma once

#include "common/text/frames.h"

namespace oomrec::helper {

// The flags kCrashTerminate, kCrashNew and kCrashOtherThrow that apply. Cost: at most 20 symbol
// lookups.
std::uint32_t flags_by_name(InHook, const session::View&, const session::Crash&,
                            text::ExportedName) noexcept;

}  // namespace oomrec::helper

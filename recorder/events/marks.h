// Marks: moments that the program names, such as the end of an epoch (oomrec_mark). The latest are
// kept, and of the older ones fewer the more there are.
#pragma once

#include <string_view>

#include "common/system/hook_scope.h"

namespace oomrec::recorder {

void mark(InHook, std::string_view text) noexcept;

// Counts a mark as dropped: it came from a signal handler that interrupted the recorder.
void drop_mark() noexcept;

void reset_marks_after_fork(InHook) noexcept;

}  // namespace oomrec::recorder

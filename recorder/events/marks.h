// Marks: moments that the program names, such as the end of an epoch (oomrec_mark).
#pragma once

#include <string_view>

#include "common/system/hook_scope.h"

namespace oomrec::recorder {

void mark(InHook, std::string_view text) noexcept;

// Counts a mark as dropped: it came from a signal handler that interrupted the recorder.
void drop_mark() noexcept;

}  // namespace oomrec::recorder

// Marks: the program says how far it has got (oomrec_mark).
#pragma once

#include <string_view>

#include "common/system/hook_scope.h"

namespace oomrec::recorder {

void mark(InHook, std::string_view text) noexcept;

// Counts a mark as dropped: it came from a signal handler that interrupted the recorder.
void drop_mark() noexcept;

}  // namespace oomrec::recorder

// oomrec_mark(): the program says where in its work it is.
#pragma once

#include <string_view>

#include "common/system/hook_scope.h"

namespace oomrec::recorder {

// oomrec_mark(): the program says where in its work it is.
void mark(InHook, std::string_view text) noexcept;

// One that came in a signal handler while the recorder was at work: counted as dropped.
void drop_mark() noexcept;

}  // namespace oomrec::recorder

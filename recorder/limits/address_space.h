// --limit-as: the kernel enforces SIZE plus what the recorder maps, so that the program has SIZE.
#pragma once

#include "common/system/hook_scope.h"

namespace oomrec::recorder {

// From start(). False: RLIMIT_AS could not be set.
bool limit_address_space(InHook) noexcept;
// Enters it in the header of a session that has just begun.
void describe_address_space_limit() noexcept;

}  // namespace oomrec::recorder

// How the functions of include/oomrec.h enter the recorder.
#pragma once

#include "common/system/hook_scope.h"

namespace oomrec::shim {

// Runs `call` as the recorder; not at all, and returns false, in a signal handler that interrupted
// it.
template <class Call>
bool as_recorder(Call call) noexcept {
  const HookScope scope;
  if (!scope.outermost()) return false;
  const KeepErrno keep;
  call(scope.in_hook());
  return true;
}

}  // namespace oomrec::shim

// How the functions of include/oomrec.h enter the recorder.
#pragma once

#include "common/system/hook_scope.h"

namespace oomrec::shim {

// Runs `call` inside the recorder. Returns false without running it in a signal handler that
// interrupted the recorder.
template <class Call>
bool as_recorder(Call call) noexcept {
  const HookScope scope;
  if (!scope.outermost()) return false;
  const KeepErrno keep;
  call(scope.in_hook());
  return true;
}

}  // namespace oomrec::shim

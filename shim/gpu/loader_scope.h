// A scope for calling the loader that leaves no trace in the program: errno, dlerror, --fail, the
// heap's totals.
#pragma once

#include "common/system/hook_scope.h"
#include "recorder/fault_injection/fault_injection.h"
#include "shim/interpose/next.h"

namespace oomrec::shim::gpu {

class LoaderScope {
 public:
  LoaderScope() noexcept = default;
  ~LoaderScope() { g_next.dlerror(); }
  LoaderScope(const LoaderScope&) = delete;
  LoaderScope& operator=(const LoaderScope&) = delete;

  // The loader's allocations are part of this scope.
  const HookScope& scope() const noexcept { return scope_; }

 private:
  const KeepErrno keep_;
  const HookScope scope_;
  const recorder::FaultPause pause_;
};

}  // namespace oomrec::shim::gpu

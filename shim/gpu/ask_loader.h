// What we ask of the loader leaves no trace in the program: errno, dlerror, --fail.
#pragma once

#include "recorder/hook_scope.h"
#include "recorder/recorder.h"
#include "shim/next.h"

namespace oomrec::shim::gpu {

class AskLoader {
 public:
  AskLoader() noexcept { recorder::pause_injection(true); }
  ~AskLoader() {
    recorder::pause_injection(false);
    g_next.dlerror();
  }
  AskLoader(const AskLoader&) = delete;
  AskLoader& operator=(const AskLoader&) = delete;

 private:
  const KeepErrno keep_;
};

}  // namespace oomrec::shim::gpu

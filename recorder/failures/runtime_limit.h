// The end of a program at a memory limit of its own runtime (common/verdict/runtimes.h): noticed in
// abort() and exit(), where nothing that we record has failed, and recorded in the session.
#pragma once

#include <string_view>

#include "common/system/hook_scope.h"

namespace oomrec::recorder {

// The program calls abort(). At a runtime's limit the signal that follows writes the bundle
// (crash.h).
void on_abort(InHook) noexcept;

// The process exits with `status`: writes the bundle if a runtime's limit is the reason.
void report_exit_at_runtime_limit(InHook, int status) noexcept;

// PHP ends a script with this message. The process may live on (a worker that serves requests).
void report_php_limit(InHook, std::string_view message) noexcept;

// Whether the session has such an end.
bool at_runtime_limit(InHook) noexcept;

}  // namespace oomrec::recorder

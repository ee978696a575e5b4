// The end of a program at a memory limit of its own runtime (common/verdict/runtimes.h), where
// nothing that we record has failed: what its stack, the JVM's counters and PHP's messages show,
// recorded in the session.
#pragma once

#include <span>
#include <string_view>

#include "common/session/entries.h"
#include "common/system/hook_scope.h"

namespace oomrec::recorder {

// The program calls abort(), or exits with `status`. False: no runtime's limit is the reason.
bool record_limit_at_abort(InHook) noexcept;
bool record_limit_at_exit(InHook, int status) noexcept;

// PHP ends a script with this message.
void record_php_limit(InHook, std::string_view message) noexcept;

// Whether the session has such an end; it has none any more, because the process lives on.
bool at_runtime_limit(InHook) noexcept;
void clear_runtime_limit(InHook) noexcept;

// The module's path, NUL-terminated; false: it does not fit.
bool copy_path(const session::Module&, std::span<char> path) noexcept;

}  // namespace oomrec::recorder

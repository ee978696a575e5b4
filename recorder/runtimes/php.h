// PHP's own memory limit: a fatal error of the script, not of the process. PHP keeps its message
// while it jumps out of the script (bailout), and has forgotten it when it exits.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "common/system/hook_scope.h"

namespace oomrec::recorder {

// Whether this process is PHP. Until start_php() it is not.
inline constinit std::atomic<bool> g_is_php{false};
void start_php() noexcept;

// Copies PHP's last error message if it is about its memory limit.
bool php_memory_error(InHook, std::span<char> message) noexcept;

// The same. `globals`: the memory of core_globals. Its layout differs by version and build: every
// word may be the pointer.
bool find_memory_error(InHook, std::span<const std::uint64_t> globals,
                       std::span<char> message) noexcept;

}  // namespace oomrec::recorder

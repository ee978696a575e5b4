// What a Java virtual machine in the process says about its own memory: counters that libjvm keeps
// but does not export. The symbol table of its file has their addresses, as JDKs are shipped.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "common/session/entries.h"
#include "common/system/hook_scope.h"

namespace oomrec::recorder {

// OutOfMemoryErrors that the JVM has thrown, for its heap or its metaspace; those that Java code
// throws (direct memory) are not counted. 0 without a JVM, whose code has appeared on a stack.
std::uint32_t count_jvm_errors(InHook) noexcept;

bool is_libjvm(std::string_view path) noexcept;

// The module's path, NUL-terminated; false: it does not fit.
bool copy_path(const session::Module&, std::span<char> path) noexcept;

}  // namespace oomrec::recorder

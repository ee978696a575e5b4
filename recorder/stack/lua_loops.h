// The native frames in which the interpreter of Lua runs Lua's functions.
#pragma once

#include <cstdint>
#include <span>

#include "recorder/stack/walk_cache.h"

namespace oomrec::stack {

// Their stack pointers, the innermost first. Returns how many. Libraries have no symbol for the
// loop, luaV_execute: it is the largest function of the interpreter.
std::uint32_t lua_loops(const NativeStack&, std::span<std::uint64_t> loops) noexcept;

}  // namespace oomrec::stack

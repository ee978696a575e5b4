// The calls of running states.
#pragma once

#include <span>

#include "recorder/lua/layout.h"
#include "recorder/lua/lua.h"
#include "recorder/lua/states.h"

namespace oomrec::stack {

// Writes `cache.calls` and their count, all of the states in their order, the innermost first.
// False: there are more.
bool read_calls(InHook, const LuaLayout&, LuaCache&, std::span<const LuaState>) noexcept;
bool read_jit_calls(InHook, LuaCache&, std::span<const LuaState>) noexcept;

}  // namespace oomrec::stack

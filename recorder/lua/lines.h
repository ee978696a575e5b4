// A function of Lua at an instruction, as a frame of the session.
#pragma once

#include <cstdint>

#include "recorder/lua/layout.h"
#include "recorder/lua/lua.h"

namespace oomrec::stack {

// Those words of a prototype by which a function is known again.
struct LuaPrototype {
  std::uint64_t words[4];  // code, lines, source; its first line and how much code
};
LuaPrototype prototype_in(const LuaLayout&,
                          const unsigned char (&bytes)[kLuaPrototypeBytes]) noexcept;

// Finds the function and line that `call` runs, for all of `line` but its key and era. Returns
// false if the function cannot be read.
bool find_line(InHook, const LuaLayout&, const LuaCall& call, LuaLine& line) noexcept;

}  // namespace oomrec::stack

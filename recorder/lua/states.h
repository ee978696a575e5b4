// The states of Lua that run on a stack.
#pragma once

#include <cstdint>
#include <span>

#include "recorder/lua/layout.h"
#include "recorder/lua/lua.h"

namespace oomrec::stack {

struct LuaState {
  std::uint64_t address;
  std::uint64_t global;
  std::uint64_t call;   // the innermost
  std::uint64_t stack;  // where its values begin
  std::uint64_t base;   // of LuaJIT: where those of the innermost call begin
};
inline constexpr std::uint32_t kLuaStates = 16;
inline constexpr std::uint16_t kJitBase = 32;

// Whether that is the state's own first call, which calls nothing.
constexpr bool is_base(const LuaState& state, std::uint64_t call) noexcept {
  return call - state.address < kLuaStateBytes;
}

// The cache's entry for this native stack. It may still be another stack's.
LuaCells& lua_cells_of(LuaCache&, std::uint64_t chain) noexcept;

// Those of the native stack that run a function, or wait for a state that they have resumed, the
// innermost first. Returns how many.
std::uint32_t running_states(InHook, const LuaStateLayout&, LuaCache&, LuaCells&,
                             std::span<LuaState, kLuaStates>) noexcept;

}  // namespace oomrec::stack

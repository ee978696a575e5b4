// The states of Lua that run on a stack.
#pragma once

#include <cstdint>
#include <span>

#include "recorder/lua/layout.h"
#include "recorder/lua/lua.h"

namespace oomrec::stack {

struct LuaState {
  std::uint64_t address;
  std::uint64_t call;   // the innermost
  std::uint64_t stack;  // where its values begin
};
inline constexpr std::uint32_t kLuaStates = 16;

// Whether that is the state's own first call, which calls nothing.
constexpr bool is_base(const LuaState& state, std::uint64_t call) noexcept {
  return call - state.address < kLuaStateBytes;
}

// Those of the memory that run a function, or wait for a state that they have resumed, the
// innermost first. Returns how many.
std::uint32_t running_states(InHook, const LuaLayout&, LuaCache&, const LuaStackMemory&,
                             std::span<LuaState, kLuaStates>) noexcept;

}  // namespace oomrec::stack

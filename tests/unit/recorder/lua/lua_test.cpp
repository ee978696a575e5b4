// Which states of Lua run, by pointers on a stack, in memory laid out like Lua 5.4's.
#include "recorder/lua/lua.h"

#include <doctest/doctest.h>

#include <cstring>
#include <memory>
#include <vector>

#include "common/system/memory.h"
#include "recorder/lua/layout.h"
#include "recorder/lua/states.h"

namespace oomrec::stack {
namespace {

const InHook kHook = OutsideHooks::in_hook();
const LuaLayout& k54 = *lua_layout(50406);

std::uint64_t address_of(const void* pointer) { return reinterpret_cast<std::uint64_t>(pointer); }

struct Block {
  alignas(8) unsigned char bytes[512] = {};

  std::uint64_t address() const { return address_of(bytes); }
  void put(std::uint64_t offset, std::uint64_t word) { std::memcpy(bytes + offset, &word, 8); }
};

struct Lua {
  Block global, call;
  std::vector<std::unique_ptr<Block>> states;

  Lua() { global.put(static_cast<std::uint64_t>(k54.state.main_thread), add(0)); }

  // A state that runs, if its status is 0.
  std::uint64_t add(std::uint8_t status) {
    Block& state = *states.emplace_back(std::make_unique<Block>());
    state.bytes[k54.state.tag_at] = k54.state.tag;
    state.bytes[k54.state.status] = status;
    state.put(k54.state.global, global.address());
    state.put(k54.state.call, call.address());
    return state.address();
  }
  std::uint64_t add_ended() {
    const std::uint64_t state = add(0);
    states.back()->put(k54.state.call, state + 96);
    return state;
  }
};

std::vector<std::uint64_t> running(LuaCache& cache, const std::vector<std::uint64_t>& stack) {
  constexpr std::uint64_t kChain = 0x1234'5678'9abc'def0;
  if (!knows_lua_chain(cache, kChain))
    add_lua_chain(
        cache, {kChain, address_of(stack.data()), address_of(stack.data() + stack.size())}, true);
  LuaState states[kLuaStates];
  const std::uint32_t count =
      running_states(kHook, k54.state, cache, lua_cells_of(cache, kChain), states);
  std::vector<std::uint64_t> found;
  for (std::uint32_t i = 0; i != count; ++i) found.push_back(states[i].address);
  return found;
}

TEST_CASE("versions") {
  CHECK(lua_version("$LuaVersion: Lua 5.4.4  Copyright (C) 1994-2022") == 50404);
  CHECK(lua_version("$Lua: Lua 5.1.5 Copyright") == 50105);
  CHECK(lua_version("Lua 5.4") == 0);
  CHECK(lua_version("") == 0);
  CHECK(lua_layout(50105) == nullptr);
  CHECK(lua_layout(50303)->version == 50303);
  CHECK(lua_layout(50499)->version == 50402);
  CHECK(lua_layout(50501)->version == 50500);
  CHECK(lua_layout(50600) == nullptr);
}

TEST_CASE("the states that run, the innermost first") {
  Lua lua;
  const std::uint64_t main = lua.states[0]->address();
  const std::uint64_t outer = lua.add(0), inner = lua.add(0), suspended = lua.add(1),
                      ended = lua.add_ended();
  auto cache = std::make_unique<LuaCache>();
  // A pointer to the main thread also lies where only the inner coroutine's functions are.
  std::vector<std::uint64_t> stack{suspended, main, 7, inner, ended, inner, outer, 1 << 20, main};
  CHECK(running(*cache, stack) == std::vector{inner, outer, main});
  CHECK(running(*cache, stack) == std::vector{inner, outer, main});  // from where they were
  SUBCASE("another coroutine runs in the same functions") {
    const std::uint64_t other = lua.add(0);
    stack[3] = stack[5] = other;
    CHECK(running(*cache, stack) == std::vector{other, outer, main});
  }
  SUBCASE("a pointer to a coroutine that has ended") {
    lua.states[2]->put(k54.state.call, inner + 96);
    CHECK(running(*cache, stack) == std::vector{outer, main});
  }
}

TEST_CASE("words that only look like a state") {
  Lua lua, of_another;
  const std::uint64_t main = lua.states[0]->address();
  of_another.global.put(static_cast<std::uint64_t>(k54.state.main_thread), main);  // not its own
  void* const gone = system::map_private(4096);
  system::unmap(gone, 4096);
  auto cache = std::make_unique<LuaCache>();
  const std::vector<std::uint64_t> stack{of_another.states[0]->address(), address_of(gone), main,
                                         lua.global.address(), ~std::uint64_t{0}};
  CHECK(running(*cache, stack) == std::vector{main});
}

TEST_CASE("none runs: known from then on") {
  Lua lua;
  auto cache = std::make_unique<LuaCache>();
  std::vector<std::uint64_t> stack{lua.add(1), 0, 0};
  CHECK(running(*cache, stack).empty());
  stack[0] = lua.states[0]->address();  // the same native frames cannot have it
  CHECK(running(*cache, stack).empty());
}

TEST_CASE("pieces of memory, some of which are not there") {
  void* const gone = system::map_private(4096);
  system::unmap(gone, 4096);
  const std::uint64_t there[2] = {1, 2};
  std::uint64_t read[3] = {7, 7, 7};
  const auto pieces = std::make_unique<Pieces>();
  pieces->add(address_of(&there[0]), &read[0], 8, 0);
  pieces->add(address_of(gone), &read[1], 8, 0);
  pieces->add(address_of(&there[1]), &read[2], 8, 0);
  pieces->read(kHook);
  CHECK(read[0] == 1);
  CHECK(read[1] == 0);
  CHECK(read[2] == 2);
}

TEST_CASE("a loop of the interpreter has each group of functions") {
  auto cache = std::make_unique<LuaCache>();
  for (std::uint32_t i = 0; i != 4; ++i) cache->frames[i].marker = 3 - i;
  const std::uint64_t loops[] = {100, 200, 300};
  place_lua_frames(*cache, 4, loops);
  CHECK(cache->frames[3].marker == 100);
  CHECK(cache->frames[2].marker == 200);
  CHECK(cache->frames[1].marker == 300);
  CHECK(cache->frames[0].marker == 300);  // its loop was not found
}

}  // namespace
}  // namespace oomrec::stack

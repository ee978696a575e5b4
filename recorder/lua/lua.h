// The functions of Lua that the calling thread runs: of PUC-Rio's Lua 5.3 to 5.5, and of
// LuaJIT 2.1.
//
// Each coroutine has a lua_State, whose list of calls needs no unwinding, but nothing says which
// coroutine runs. We look for those that do on the thread's stack: the interpreter's C functions
// have a pointer to their state there. A state that neither runs nor waits for one that it resumed
// tells so itself. Any word may look like a pointer, so what it points to is read by system calls,
// or in blocks that are known (pieces.h).
#pragma once

#include <cstdint>
#include <span>

#include "common/session/layout.h"
#include "common/system/hook_scope.h"
#include "recorder/lua/pieces.h"
#include "recorder/python/chain_cache.h"

namespace oomrec::stack {

// A function at an instruction, and its frame in the session.
struct LuaLine {
  std::uint64_t key;        // key_of() its call; 0: none
  std::uint64_t prototype;  // the function's
  std::uint64_t words[4];   // by which we see that it is the same one
  std::uint64_t frame;
  std::uint32_t era;  // g_code_era, of `frame`
};

// The native stack: its chain, and the memory [sp, end) of its frames.
struct LuaStackMemory {
  std::uint64_t chain, sp, end;
};

// Where on a native stack the pointers to the running states are.
struct LuaCells {
  static constexpr std::uint32_t kMost = 4;
  LuaStackMemory stack;        // chain 0: of none
  bool may_run;                // one runs, as far as is known
  std::uint32_t count;         // 0: not known
  std::uint64_t cells[kMost];  // the innermost state's first
};

// A call of a running state.
struct LuaCall {
  std::uint64_t address;
  std::uint64_t function;     // of LuaJIT itself; else where it is on Lua's stack
  std::uint64_t outer;        // the next call outwards
  std::uint64_t instruction;  // where it goes on; 0: unknown
  std::uint64_t stack;        // where Lua's stack is
  bool is_of_lua;             // not of C
  bool is_fresh;              // the outermost of a loop
  bool is_innermost;          // of its state: what it called has returned
};
// Instructions are at multiples of 4.
constexpr std::uint64_t key_of(const LuaCall& call) noexcept {
  return (call.instruction != 0 ? call.instruction : call.function) | call.is_innermost;
}

inline constexpr std::uint32_t kLuaCalls = Pieces::kMost;  // so many of the innermost are read
inline constexpr std::size_t kLuaCallBytes = 72, kLuaPrototypeBytes = 120;  // that we read

// Of a thread. Initially zero.
struct LuaCache {
  std::uint64_t global;  // the global_State that a state was last found to belong to
  LuaCells cells[256];
  LuaLine lines[256];
  std::uint32_t count;  // of `calls`, the last walk's, the innermost first
  LuaCall calls[kLuaCalls], fresh_calls[kLuaCalls];
  PythonFrame frames[kLuaCalls];  // the outermost first
  Pieces pieces;
  unsigned char call_bytes[kLuaCalls][kLuaCallBytes];
  unsigned char prototypes[kLuaCalls][kLuaPrototypeBytes];

  // Of a search for states.
  static constexpr std::uint32_t kCandidates = 64;
  struct Candidate {
    std::uint64_t address;
    std::uint64_t cell;  // of the stack
  };
  Candidate candidates[kCandidates];
  unsigned char headers[kCandidates][96];  // as much of a state as we read
  std::uint64_t seen[1024];

  std::uint64_t words[512];  // of a stack
};

// Which states run follows from the native frames. Call add_lua_chain() for those that are not
// known: `has_interpreter`: there is its code among them.
bool knows_lua_chain(LuaCache&, std::uint64_t chain) noexcept;
void add_lua_chain(LuaCache&, const LuaStackMemory&, bool has_interpreter) noexcept;

// Whether there is an interpreter that we know.
bool has_lua() noexcept;
// Where its code is mapped.
bool is_lua_code(std::uint64_t address) noexcept;

// The calling thread's functions of Lua, as Python's frames are given. The marker of each is how
// many loops of the interpreter run inside the one that runs it: place_lua_frames() replaces it.
PythonStack lua_stack(InHook, LuaCache&, std::uint64_t chain) noexcept;

// `loops`: the stack pointers of the loops' native frames, the innermost first.
void place_lua_frames(LuaCache&, std::uint32_t count,
                      std::span<const std::uint64_t> loops) noexcept;

// Whether it is the interpreter, the first that we know.
bool lua_module_loaded(InHook, std::uint64_t start, std::uint64_t end) noexcept;
void lua_modules_unloaded(InHook) noexcept;

}  // namespace oomrec::stack

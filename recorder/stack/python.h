// The Python interpreter in this process, and what reads its frames without calling its API.
//
// Between the files that do it: python_attach.cpp finds the interpreter, python_thread.h its state
// of a thread, python.cpp walks the thread's frames, python_codes.cpp interns code objects,
// merge.cpp puts both chains together.
// Everything of the interpreter is only read; three of its functions are called, each a few
// instructions without lock or allocation.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>

#include "common/system/hook_scope.h"
#include "recorder/stack/python_offsets.h"
#include "recorder/stack/stack.h"

namespace oomrec::stack {

struct ThreadState;

struct Interpreter {
  std::atomic<bool> ready;  // release: what follows is complete and the self tests passed
  std::uint32_t version_hex;
  const char* problem;  // static text: why there are no Python frames; null: none seen, or ready
  PythonOffsets at;

  // The thread state that runs: up to 3.11 whichever thread's holds the GIL, later this thread's,
  // null while it has released the GIL.
  void* (*attached_state)();
  void* (*own_state)();  // this thread's, with or without the GIL
  int (*is_finalizing)();

  // python_held.h
  std::uint32_t (*links_held)(const PythonMemo&, std::uint32_t, const ThreadState&,
                              std::uint64_t& cframe);

  std::uint64_t code_type;  // &PyCode_Type, &PyType_Type
  std::uint64_t type_type;

  // 3.8 and 3.9: the eval loop's code, one part or two (PGO splits off the cold part).
  struct Range {
    std::uint64_t start, end;
    bool contains(std::uint64_t pc) const noexcept { return pc >= start && pc < end; }
  };
  Range eval_loop[2];
};
inline constinit Interpreter g_interpreter{};

// Finds the interpreter that the program was started with; from the constructor.
void python_start() noexcept;

// A module was entered in the session: when it is an interpreter (loaded later, or RTLD_LOCAL) and
// none is attached, attaches to it. `start`: where its ELF header is mapped.
void python_module_seen(InHook, std::uint64_t start) noexcept;

// Modules were unloaded: lets go of an interpreter that was among them.
void python_forget_modules(InHook) noexcept;

// The session's tables are no longer ours (child of a fork): code ids are void.
void python_forget_session(InHook) noexcept;

// Says in the session's header which interpreter runs, once a session.
void python_describe(InHook) noexcept;

// python_codes.cpp: the entry in `codes` of a code object with this print (python_code.h); 0: it
// cannot be told (tables full, dead or foreign object). kHiddenCode: a helper of the interpreter's
// own, not to be shown.
inline constexpr std::uint32_t kHiddenCode = 0xffff'ffff;
std::uint32_t intern_code(InHook, std::uint64_t code_object, const CodePrint&) noexcept;
bool prepare_codes() noexcept;  // reserves the tables; false: no room
void forget_codes(InHook) noexcept;

// Reads a word of the interpreter's memory.
template <class T>
T load(std::uint64_t address) noexcept {
  T value;
  std::memcpy(&value, reinterpret_cast<const void*>(address), sizeof value);
  return value;
}

}  // namespace oomrec::stack

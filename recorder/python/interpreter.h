// The Python interpreter in this process: the offsets of its fields, and its functions.
//
// We only read its objects, and call four of its functions, each a few instructions without lock
// or allocation; and at its end two more (uncaught.h).
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>

#include "recorder/python/chain_cache.h"
#include "recorder/python/offsets.h"

namespace oomrec::stack {

struct ThreadState;

struct Interpreter {
  std::atomic<bool> ready;  // release: what follows is complete and the self tests passed
  // Of a version in no table: the first walk decides whether its frames are what we take them for.
  std::atomic<bool> unverified;
  std::uint32_t version_hex;
  const char* problem;  // static text: why there are no Python frames; null: none seen, or ready
  PythonOffsets at;

  // The running thread state. Up to 3.11: of the thread that holds the GIL. Later: this thread's,
  // null while it has released the GIL.
  void* (*attached_state)();
  void* (*own_state)();  // this thread's, with or without the GIL
  int (*is_finalizing)();
  int (*is_initialized)();  // null where it does not export it

  // uncaught.h; null or 0 where it does not export them.
  void* (*sys_object)(const char* name);  // borrowed
  int (*is_subtype)(void* type, void* base);
  std::uint64_t memory_error;  // &PyExc_MemoryError

  // Whether its objects come from a heap of its own (mimalloc), which never asks malloc: of a
  // free-threaded one always, and by PYTHONMALLOC=mimalloc from 3.13 on, if it reads its
  // environment.
  std::atomic<bool> has_own_heap;
  bool may_have_own_heap;

  // Functions of its table of allocators; 0 where it does not export one. `arena`: of the table
  // that maps the pool.
  struct Allocators {
    std::uint64_t get, set, get_arena, set_arena;
  };
  Allocators allocators;

  // unchanged_links.h
  std::uint32_t (*first_changed_link)(const PythonCache&, std::uint32_t, const ThreadState&,
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

// Reads a word of the interpreter's memory.
template <class T>
T load(std::uint64_t address) noexcept {
  T value;
  std::memcpy(&value, reinterpret_cast<const void*>(address), sizeof value);
  return value;
}

}  // namespace oomrec::stack

// Frames of Java, in HotSpot: where their callers are, and which lines they run.
//
// HotSpot describes its data structures for its debugger (jhsdb, the Serviceability Agent): tables
// in libjvm give the offset of each field. From them we know a compiled method's frame, the methods
// that were inlined into it, and the method that the interpreter runs. So Java's frames need
// neither frame pointers nor an agent.
//
// A frame's line, a bytecode of a method, is recorded as an address of a table of ours. Its name
// goes to the map for perf (common/names/perf_map.h) when the line is first seen: HotSpot itself
// writes a map only when it ends, and none of interpreted methods.
#pragma once

#include <cstdint>
#include <span>

#include "common/system/hook_scope.h"

namespace oomrec::stack {

// Code in HotSpot's code cache.
struct JavaCode {
  enum class Kind : std::uint8_t { none, entry, interpreter, method, stub };
  Kind kind = Kind::none;
  std::uint64_t blob = 0;         // what the code cache has there
  std::uint64_t frame_bytes = 0;  // with the return address; 0: its frame is not of fixed size
};
// `pc`: a return address on the calling thread's stack. HotSpot keeps its code until the method has
// returned.
JavaCode java_code_at(InHook, std::uint64_t pc) noexcept;

// The line that the interpreter runs, in `address`. False: unknown, or without --jit-names.
bool interpreted_java_line(InHook, std::uint64_t method, std::uint64_t bytecode,
                           std::uint64_t& address) noexcept;

// The lines of a compiled method's frame, those of inlined methods first. Returns how many.
std::uint32_t compiled_java_lines(InHook, const JavaCode&, std::uint64_t pc,
                                  std::span<std::uint64_t> addresses) noexcept;
inline constexpr std::uint32_t kMostInlined = 16;

void java_start() noexcept;
void java_module_loaded(InHook, std::uint64_t start) noexcept;
void java_modules_unloaded(InHook) noexcept;
void java_reset_after_fork() noexcept;  // a child has no JVM

}  // namespace oomrec::stack

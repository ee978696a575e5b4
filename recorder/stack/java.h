// Frames of Java, in HotSpot: where their callers are, and which lines they run.
//
// HotSpot describes its data structures for its debugger (jhsdb, the Serviceability Agent): tables
// in libjvm give the offset of each field. From them we know a compiled method's frame, the methods
// that were inlined into it, and the method that the interpreter runs. So Java's frames need
// neither frame pointers nor an agent.
//
// A walk has an address of a table of ours for a frame's line, which is a bytecode of a method. The
// session has its function and line.
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

// The line that the interpreter runs, in `address`. False: unknown.
bool interpreted_java_line(std::uint64_t method, std::uint64_t bytecode,
                           std::uint64_t& address) noexcept;

// The lines of a compiled method's frame, those of inlined methods first. Returns how many.
std::uint32_t compiled_java_lines(InHook, const JavaCode&, std::uint64_t pc,
                                  std::span<std::uint64_t> addresses) noexcept;
inline constexpr std::uint32_t kMostInlined = 16;

// The frame, in the session, of such an address; 0: it is none, or the line has no name.
std::uint64_t java_frame(InHook, std::uint64_t pc) noexcept;

void java_module_loaded(InHook, std::uint64_t start) noexcept;
void java_modules_unloaded(InHook) noexcept;
void java_reset_after_fork() noexcept;  // a child has no JVM

}  // namespace oomrec::stack

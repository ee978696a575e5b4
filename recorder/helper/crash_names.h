// Classifies a crash by the names of the functions on its stack and on the stack of the failed
// request.
//
// Only the process itself can resolve these names, so the result is stored as flags of the crash.
#pragma once

#include <span>

#include "common/text/frames.h"

namespace oomrec::helper {

struct CrashNames {
  std::uint32_t flags = 0;       // kCrashTerminate, kCrashNew and kCrashOtherThrow that apply
  bool heap_corruption = false;  // the C library's allocator ended the program
  std::uint64_t c_library = 0;   // where the library whose abort() did so is mapped; 0: none
  std::uint32_t new_frames =
      0;                 // the failed request's innermost frames up to operator new's; 0: none
  bool nothrow = false;  // it is a form of operator new that returns NULL
  std::uint64_t cxx_runtime = 0;  // where the C++ runtime is mapped that has thrown; 0: none has
};

// `function`: receives the C library's function that called abort() for another, such as
// __assert_fail; empty: there is none. Cost: some 20 symbol lookups.
CrashNames names_of_crash(InHook, const session::View&, const session::Crash&, text::ExportedName,
                          std::span<char> function) noexcept;

}  // namespace oomrec::helper

// What the instructions around a return address tell about frames of code that was made at run time
// and has no CFI.
#pragma once

#include <cstdint>

namespace oomrec::machine {

// The end of a function: where its frame ends above sp, and where in it the caller's bp is, if it
// was saved there.
struct Epilogue {
  std::uint64_t frame_bytes = 0;  // with the return address; 0: there is none
  bool has_bp = false;            // else bp is the caller's
  std::uint64_t bp_offset = 0;    // from sp
};

// What a call leads to.
struct Callee {
  enum class Kind : std::uint8_t { none, unknown, function };
  Kind kind = Kind::none;     // none: it is no call; unknown: it is known only when it is made
  std::uint64_t address = 0;  // of a function
};

}  // namespace oomrec::machine

#if defined(__x86_64__)
#include "common/machine/x86_64/generated_code.h"
#elif defined(__aarch64__)
#include "common/machine/aarch64/generated_code.h"
#endif

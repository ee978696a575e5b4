// The answer to `oomrec attach --objects`, in the memory of the process that counts: the library
// writes it as the symbol oomrec_object_counts, the command reads it from outside.
#pragma once

#include <cstddef>

#include "common/session/types.h"

namespace oomrec::session {

inline constexpr std::size_t kObjectCountsBytes = 24 * 1024;  // of the text behind the page's head

// `bytes`: of the text, once the state is `done`.
struct ObjectCountsPage {
  enum State : u32 { none, waiting, counting, done, failed };
  u32 state;
  u32 bytes;
};

}  // namespace oomrec::session

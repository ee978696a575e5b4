// The numbers of frames: entries of `frames` in the session, which nodes point to. Many nodes have
// the same frame.
#pragma once

#include <cstdint>

#include "common/system/hook_scope.h"
#include "recorder/session/writer.h"

namespace oomrec::stack {

inline std::uint64_t word_of_frame(std::uint32_t number) noexcept {
  return session::g_session.frames.at(number).word;
}

// The number of the frame with this word, which is added if it is new. 0: no memory. Under the
// caller's lock.
std::uint32_t number_of_frame(InHook, std::uint64_t word) noexcept;

void reset_frame_numbers(InHook) noexcept;  // after a fork

}  // namespace oomrec::stack

// The numbers of frames: entries of `frames` in the session, which nodes point to. Many nodes have
// the same frame; one that no node has is used again.
//
// An index of them is private: numbers by hash, open addressing, doubled when three quarters full.
// All but word_of_frame() under the trie's lock.
#pragma once

#include <cstdint>

#include "common/system/hook_scope.h"
#include "recorder/session/reuse.h"
#include "recorder/session/writer.h"

namespace oomrec::stack {

// Of a node that may have been retired meanwhile, this is any frame's.
inline std::uint64_t word_of_frame(std::uint32_t number) noexcept {
  return session::word_of(session::g_session.frames.at(number)).load(std::memory_order_relaxed);
}

// The number of the frame with this word, for one more node. 0: no memory.
std::uint32_t take_frame(InHook, std::uint64_t word) noexcept;

bool has_frame(std::uint64_t word) noexcept;

// One node less has it.
void give_back_frame(InHook, std::uint32_t number) noexcept;

void reset_frame_numbers(InHook) noexcept;  // after a fork

}  // namespace oomrec::stack

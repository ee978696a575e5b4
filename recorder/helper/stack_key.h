// What identifies a stack in the report: the frames by which a reader recognizes it, and a key by
// which stacks are grouped.
#pragma once

#include <cstdint>

#include "common/session/entries.h"
#include "common/session/view.h"

namespace oomrec::helper {

// 0: none.
struct KeyFrames {
  std::uint64_t own_python = 0;  // the innermost line of the program's own code
  std::uint64_t python = 0;      // the innermost of all
  std::uint64_t native = 0;      // the innermost one outside allocators and the C library
  std::uint64_t own_native = 0;  // the innermost one of these in a module of the program
  std::uint32_t node = 0;        // the stack they are of
};
KeyFrames key_frames(const session::View& view, std::uint32_t node) noexcept;

// Stacks with equal keys are one, as `oomrec show` groups them: of those that run Python the lines
// count, and native functions of the program's own. Functions that call themselves, also by way of
// up to seven others, count once, with the innermost lines. A native function has no name here,
// only the place of its call: of it, the outermost depth is another stack.
class StackKey {
 public:
  std::uint64_t of(const session::View& view, std::uint32_t node, bool runs_python) noexcept;

 private:
  // The next frame further out: its function, and where in it.
  void add(std::uint64_t function, std::uint64_t place) noexcept;

  std::uint64_t functions_[session::kMaxFrames];
  std::uint64_t places_[session::kMaxFrames];
  std::uint32_t count_;
};

}  // namespace oomrec::helper

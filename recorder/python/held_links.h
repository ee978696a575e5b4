// Which links of a thread's last Python chain are still what they were.
//
// A link is what it was when it is at its address, which the chain as it is now leads to; when the
// frame's cells hold what they held, all that a walk reads of it; when its code object has the same
// fingerprint; and, where the C frames of eval calls are a chain of their own (3.10, 3.11), when
// its C frame is the same. What was made of it and of those further out is then what it would be
// again.
#pragma once

#include "recorder/python/thread.h"

namespace oomrec::stack {

inline constexpr std::uint32_t kAllHold = 0xffff'ffff;
inline constexpr std::uint32_t kThreadDied = 0xffff'fffe;

// From the link `index`, whose address the chain has just led to, outwards: the first that is not
// what it was. `cframe`: of the eval call of the link, where the version has them in a chain; goes
// along. A nanosecond or two a link, a hundredth of what the walk takes over.
using LinksHeld = decltype(Interpreter::links_held);

// The function for this layout of the interpreter's objects.
LinksHeld links_held_by(const PythonOffsets&) noexcept;

}  // namespace oomrec::stack

// Which links of a thread's cached Python chain are unchanged.
//
// A link is unchanged if the current chain leads to its address, the frame's cells that a walk
// reads have the same values, its code object has the same fingerprint, and, where the C frames of
// eval calls are a chain of their own (3.10, 3.11), its C frame is the same. If that holds for it
// and all further out, a new walk would derive the same from them.
#pragma once

#include "recorder/python/thread.h"

namespace oomrec::stack {

inline constexpr std::uint32_t kNoneChanged = 0xffff'ffff;
inline constexpr std::uint32_t kThreadDied = 0xffff'fffe;

// The first changed link from link `index` outwards; the current chain leads to the address of link
// `index`. `cframe`: the C frame of the link's eval call, in versions that chain these; updated.
// Costs one or two nanoseconds a link, a hundredth of a walk.
using FirstChangedLink = decltype(Interpreter::first_changed_link);

// The function for this layout of the interpreter's objects.
FirstChangedLink first_changed_link_by(const PythonOffsets&) noexcept;

}  // namespace oomrec::stack

// Numbers code objects in the session.
//
// The address of a code object says little: programs that make code at run time reuse addresses all
// the time. Hence two tables: a cache by address, whose slots carry a fingerprint of the object
// that is compared at every look-up, and the truth, by a hash of the content (file, name, first
// line, line table). The same function made a thousand times is one entry of the session.
#pragma once

#include <cstdint>

#include "common/system/hook_scope.h"
#include "recorder/python/memo.h"

namespace oomrec::stack {

// The entry in `codes` of a code object with this fingerprint (python_code.h); 0: it
// cannot be told (tables full, dead or foreign object). kHiddenCode: a helper of the interpreter's
// own, not to be shown.
inline constexpr std::uint32_t kHiddenCode = 0xffff'ffff;
std::uint32_t intern_code(InHook, std::uint64_t code_object, const CodeFingerprint&) noexcept;
bool prepare_codes() noexcept;  // reserves the tables; false: no room
void forget_codes(InHook) noexcept;

}  // namespace oomrec::stack

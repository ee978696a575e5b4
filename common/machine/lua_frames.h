// Where the C frame of LuaJIT's interpreter has the instruction at which it called C (CFRAME_OFS_PC
// of lj_frame.h), in bytes.
#pragma once

#include <cstdint>

namespace oomrec::machine {

#if defined(__x86_64__)
inline constexpr std::uint64_t kLuaJitInstruction = 24;
#else
inline constexpr std::uint64_t kLuaJitInstruction = 8;
#endif

}  // namespace oomrec::machine

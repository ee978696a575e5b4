// Where HotSpot's interpreter keeps what it runs: words from where bp points to, in its frames.
#pragma once

#include <cstdint>

namespace oomrec::machine {

#if defined(__x86_64__)
inline constexpr bool kKnowsJavaFrames = true;
#else
inline constexpr bool kKnowsJavaFrames = false;  // not tried: see x86-64's
#endif
inline constexpr std::uint64_t kJavaCallerSp = 8, kJavaMethod = 24, kJavaBytecode = 64;  // below bp

}  // namespace oomrec::machine

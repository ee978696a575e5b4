#pragma once

namespace oomrec::machine {

// The kernel brings its own code.
inline constexpr unsigned long kSignalReturnFlag = 0;
inline constexpr void (*kSignalReturn)() = nullptr;

}  // namespace oomrec::machine

#pragma once

// Debuggers recognize a signal frame by these instructions.
asm(R"(
        .pushsection .text
        .p2align 4
        nop
oomrec_return_from_signal:
        mov     $15, %rax
        syscall
        .popsection
)");
extern "C" [[gnu::visibility("hidden")]] void oomrec_return_from_signal();

namespace oomrec::machine {

inline constexpr unsigned long kSignalReturnFlag = 0x0400'0000;  // SA_RESTORER
inline constexpr void (*kSignalReturn)() = oomrec_return_from_signal;

}  // namespace oomrec::machine

#pragma once

// clang-format off
#define OLDEST_GLIBC GLIBC_2.2.5
#define OLDEST_DLADDR1 GLIBC_2.3.3

        .macro  landing              // the first instruction of what is entered by a jump
        endbr64
        .endm

        .macro  jump_through word    // to the address in this word of ours
        jmp     *\word(%rip)
        .endm

        .macro  jump_to symbol       // to another library's function
        jmp     *\symbol@GOTPCREL(%rip)
        .endm

        .macro  jump_to_either symbol, fallback  // if `symbol` is null, to `fallback`
        mov     \symbol@GOTPCREL(%rip), %rax
        test    %rax, %rax
        je      \fallback
        jmp     *%rax
        .endm

        .macro  return_address_of symbol
        mov     \symbol@GOTPCREL(%rip), %rax
        ret
        .endm

        .macro  pass_fourth_and_null symbol  // the fourth argument, and a fifth of null
        lea     \symbol(%rip), %rcx
        xor     %r8d, %r8d
        .endm

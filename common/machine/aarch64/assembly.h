#pragma once

// clang-format off
#define OLDEST_GLIBC GLIBC_2.17
#define OLDEST_DLADDR1 GLIBC_2.17

// Without a GNU property note: a processor that checks branches (BTI) does so only in files that
// are compiled for it throughout.
        .macro  landing              // the first instruction of what is entered by a jump
        hint    34                   // bti c
        .endm

        .macro  jump_through word    // to the address in this word of ours
        adrp    x16, \word
        ldr     x16, [x16, :lo12:\word]
        br      x16
        .endm

        .macro  jump_to symbol       // to another library's function
        adrp    x16, :got:\symbol
        ldr     x16, [x16, :got_lo12:\symbol]
        br      x16
        .endm

        .macro  jump_to_either symbol, fallback  // if `symbol` is null, to `fallback`
        adrp    x16, :got:\symbol
        ldr     x16, [x16, :got_lo12:\symbol]
        cbz     x16, 1f
        br      x16
1:      b       \fallback
        .endm

        .macro  return_address_of symbol
        adrp    x0, :got:\symbol
        ldr     x0, [x0, :got_lo12:\symbol]
        ret
        .endm

        .macro  pass_fourth_and_null symbol  // the fourth argument, and a fifth of null
        adrp    x3, \symbol
        add     x3, x3, :lo12:\symbol
        mov     x4, xzr
        .endm

# void *dlsym(void *library, const char *name)
#
# The loader's function resolves RTLD_NEXT and RTLD_DEFAULT relative to its return address. So it is
# entered by a jump, with the caller's address. An ordinary function that calls it would break
# RTLD_NEXT in all other libraries.
#
# Exported under the C library's versions, because a library preloaded before us with its own dlsym
# looks up the next one by version; and only under those, which other C libraries ignore.
#include "common/machine/assembly.h"
        .text
        .globl  oomrec_dlsym
        .type   oomrec_dlsym, @function
        .symver oomrec_dlsym, dlsym@GLIBC_2.17, remove
        .globl  oomrec_dlsym_2_34
        .type   oomrec_dlsym_2_34, @function
        .set    oomrec_dlsym_2_34, oomrec_dlsym
        .symver oomrec_dlsym_2_34, dlsym@GLIBC_2.34, remove
        .p2align 4
oomrec_dlsym:
        .cfi_startproc
        landing
        stp     x29, x30, [sp, -32]!
        .cfi_def_cfa_offset 32
        .cfi_offset 29, -32
        .cfi_offset 30, -24
        mov     x29, sp
        stp     x0, x1, [sp, 16]
        mov     x2, x30                       // the caller
        bl      oomrec_dlsym_filter           // x0: the answer, x1: whether it is one
        mov     x16, x0
        mov     x17, x1
        ldp     x0, x1, [sp, 16]
        ldp     x29, x30, [sp], 32
        .cfi_def_cfa_offset 0
        .cfi_restore 29
        .cfi_restore 30
        cbnz    x17, 1f
        jump_through oomrec_next_dlsym
1:      mov     x0, x16
        ret
        .cfi_endproc
        .size   oomrec_dlsym, . - oomrec_dlsym
        .section .note.GNU-stack, "", @progbits

# The exported C functions: each is a jump to its pointer in the table, whose order is that of the
# lists below (entries.cpp).
#include "common/machine/assembly.h"
#include "shim/interpose/next_functions.h"

        .macro  entry name
        .globl  \name
        .type   \name, @function
        .p2align 4
\name:
        .cfi_startproc
        landing
        jump_through oomrec_entries+offset
        .cfi_endproc
        .size   \name, . - \name
        .set    offset, offset + 8
        .endm

        .text
        .set    offset, 0
#define X(result, name, parameters, arguments) entry name;
        OOMREC_ENTERED_FUNCTIONS(X)
#undef X
#define X(name) entry name;
        OOMREC_OTHER_ENTERED_FUNCTIONS(X)
#undef X
        .section .note.GNU-stack, "", @progbits
